#include "engine/node/confirming.hpp"

#include "engine/hold.hpp"
#include "engine/passing.hpp"

namespace holdfast::engine {

bool confirming::is_wanted(const node_hold& n) noexcept {
    return node_core::options_of(n).replicas > 0;
}

void confirming::ask(node_hold& n, call* node_requests::*slot, call::purpose what, const proof& shown) {
    call& request = core_.calls().start(what, n);
    request.remember(shown);
    wire::write(request, {.keys = core_.keys_of(n), .kind = core_.options_of(n).kind},
                wire::confirm_request{.id = core_.id_of(n), .token = shown.token});
    core_.busy(n).*slot = &request;
    core_.confirm(request, n);
}

confirmation confirming::judge(const node_hold& n, const redis::reply_view& reply) const {
    const auto replicas = reply.to_integer();
    if (replicas && *replicas >= static_cast<std::int64_t>(core_.options_of(n).replicas)) return {};
    const refusal why = too_few();
    return judge(failure{why.code, why.detail});
}

confirmation confirming::judge(const failure& why) {
    return {why, why.code == errc::outcome_unknown || may_pass(why.code) || is_silence(why.code)};
}

refusal confirming::too_few() const {
    return {errc::not_replicated, core_.settings().server + ": too few replicas acknowledged it in time", {}, {}};
}

}  // namespace holdfast::engine
