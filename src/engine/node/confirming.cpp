#include "engine/node/parts.hpp"

namespace holdfast::engine::confirming {

void ask(node_agent& agent, node_hold& n, call* node_requests::*slot, purpose what, const proof& shown) {
    call& request = agent.start(what, n, slot);
    request.remember(shown);
    wire::write(request, {.keys = agent.keys_of(n), .kind = agent.options_of(n).kind},
                wire::confirm_request{.id = agent.id_of(n), .token = shown.token, .ceiling = shown.ceiling});
    agent.confirm(request, n);
}

confirmation conclude(node_agent& agent, const node_hold& n, const redis::reply_view& reply) {
    const auto replicas = reply.to_integer();
    if (replicas && *replicas >= static_cast<std::int64_t>(agent.options_of(n).replicas)) return {};
    const refusal why = too_few(agent);
    return conclude(failure{why.code, why.detail});
}

confirmation conclude(const failure& why) {
    return {why, why.code == errc::outcome_unknown || may_pass(why.code) || is_silence(why.code)};
}

refusal too_few(node_agent& agent) {
    return {errc::not_replicated, agent.server() + ": too few replicas acknowledged it in time", {}, {}};
}

}  // namespace holdfast::engine::confirming
