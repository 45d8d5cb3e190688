#include "engine/node/parts.hpp"

namespace holdfast::engine::raising {
namespace {

// A marked grant of a mutex: any token up to the last one means it. A read-write lock remembers each grant's token.
bool is_named_by_its_ceiling(node_agent& agent, const node_hold& n) {
    return n.is_marked() && !agent.kind_of(n).has_shared_mode();
}

void send(node_agent& agent, node_hold& n, instant now) {
    if (n.requests) n.requests->raise_again_at = never;
    agent.drop(n, &node_requests::raising);
    call& request = agent.start(purpose::raise, n, &node_requests::raising);
    wire::write(request, agent.lock_of(n, now),
                wire::raise_request{
                    .id = agent.id_of(n), .token = n.token, .to = n.raise_to, .ceiling = keeping::ceiling_of(n)});
    agent.send(request, n.valid_until);
}

void send_later(node_agent& agent, node_hold& n, instant now) {
    agent.busy(n).raise_again_at = now + again_after;
    agent.set_timer(n, now);
}

void done(node_agent& agent, node_hold& n) {
    agent.adopt(n, n.raise_to);
    keeping::note_ceiling(n, n.raise_to);
    agent.tell(node_event::kind::raised, n);
}

// Its replicas perhaps not yet.
void has_it(node_agent& agent, node_hold& n) {
    if (!confirming::is_wanted(n)) return done(agent, n);
    confirming::ask(agent, n, &node_requests::raising, purpose::confirm_raise, {.token = n.raise_to});
}

}  // namespace

void raise(node_agent& agent, node_hold& n, fencing_token to, instant now) {
    n.raise_to = to;
    const bool has_it_already = is_named_by_its_ceiling(agent, n) && keeping::ceiling_of(n) >= to;
    has_it_already ? has_it(agent, n) : send(agent, n, now);
}

void on_reply(node_agent& agent, node_hold& n, const redis::reply_view& reply, instant now) {
    if (reply.is_error()) return on_failure(agent, n, agent.classify(n, reply), now);
    const auto answer = wire::read_hold(reply);
    if (!answer) return on_failure(agent, n, {agent.nonsense().code, agent.nonsense().detail}, now);
    // A renewal came before it, and the hold has more numbers now: it is named by the last one.
    const bool has_more = is_named_by_its_ceiling(agent, n) && answer->holder == std::string_view(agent.id_of(n));
    if (has_more && !n.ran_out(now))
        return keeping::ceiling_of(n) < n.raise_to ? send_later(agent, n, now) : has_it(agent, n);
    if (answer->what != hold_answer::verdict::done) return agent.lose(n, errc::held_by_other);
    if (n.ran_out(now)) return agent.lose(n, errc::lost);
    const bool believed = agent.kind_of(n).has_shared_mode() && may_write(n.has);
    if (believed && !may_write(answer->held)) return agent.lose(n, errc::held_by_other);
    has_it(agent, n);
}

void on_confirmation(node_agent& agent, node_hold& n, const confirmation& said, instant now) {
    if (!said.why_not) return done(agent, n);
    said.is_unknown ? send_later(agent, n, now) : on_failure(agent, n, *said.why_not, now);
}

void on_failure(node_agent& agent, node_hold& n, const failure& why, instant now) {
    if (n.ran_out(now)) return agent.lose(n, errc::lost);               // it was not sent before its validity ended
    if (why.code == errc::outcome_unknown) return send(agent, n, now);  // repeatable: goes out on the next link
    if (may_pass(why.code)) return send_later(agent, n, now);
    // A node hold that does not remember its token does not count.
    releasing::release(agent, n, now);
    agent.tell_failed(node_event::kind::refused, n, {why.code, why.detail, {}, {}});
}

void on_timer(node_agent& agent, node_hold& n, instant now) {
    if (now >= n.pending().raise_again_at) send(agent, n, now);
}

}  // namespace holdfast::engine::raising
