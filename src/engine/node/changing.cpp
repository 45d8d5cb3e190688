#include "engine/node/parts.hpp"

namespace holdfast::engine::changing {
namespace {

// The node has more of it than it should.
bool exceeds(shape has, shape at_most) {
    return (may_write(has) && !may_write(at_most)) || (may_read(has) && !may_read(at_most));
}

void send(node_agent& agent, node_hold& n, instant now) {
    call& request = agent.start(n.cancelling ? purpose::cancel : purpose::change, n, &node_requests::changing);
    if (n.cancelling) {
        wire::write(request, agent.lock_of(n, now), wire::cancel_request{.id = agent.id_of(n)});
    } else {
        n.change_to = n.at_most;
        wire::write(
            request, agent.lock_of(n, now),
            wire::release_request{
                .id = agent.id_of(n), .token = n.token, .left_over = n.change_to, .lease = agent.options_of(n).lease});
        request.send_text_at_first();
    }
    agent.send(request, n.valid_until);
}

void done(node_agent& agent, node_hold& n, const hold_answer& answer, instant now) {
    agent.set_timer(n, now);
    agent.tell({.what = node_event::kind::changed, .at = &n, .holders = answer.holders, .waiters = answer.waiters});
}

void begin(node_agent& agent, node_hold& n, instant now) {
    if (n.is_being_changed()) return;
    if (n.cancelling || exceeds(n.has, n.at_most)) return send(agent, n, now);
    done(agent, n, {}, now);
}

void give_up(node_agent& agent, node_hold& n, refusal why, instant now) {
    // The position in the queue is still there, and may be served: what the node has is no longer known.
    if (n.cancelling) agent.mark_stray(n);
    n.cancelling = false;
    agent.set_timer(n, now);
    agent.tell_failed(node_event::kind::changed, n, std::move(why));
}

void on_cancel_reply(node_agent& agent, node_hold& n, const redis::reply_view& reply, instant now) {
    const auto answer = wire::read_hold(reply);
    if (!answer) return give_up(agent, n, agent.nonsense(), now);
    if (answer->what != hold_answer::verdict::done) return agent.lose(n, errc::not_held);
    n.cancelling = false;
    agent.adopt(n, answer->token);
    n.has = answer->held;
    keeping::note_waiters(agent, n, answer->waiters);
    begin(agent, n, now);
}

}  // namespace

void make_less(node_agent& agent, node_hold& n, shape at_most, instant now) {
    n.at_most = at_most;
    if (!n.counts()) return;
    begin(agent, n, now);
    agent.set_timer(n, now);
}

void cancel_upgrade(node_agent& agent, node_hold& n, instant now) {
    n.cancelling = true;
    begin(agent, n, now);
}

void on_reply(node_agent& agent, node_hold& n, const call& asked, const redis::reply_view& reply, instant now) {
    if (reply.is_error()) {
        const failure why = agent.classify(n, reply);
        if (!may_pass(why.code)) return give_up(agent, n, {why.code, why.detail, {}, {}}, now);
        agent.busy(n).change_again_at = now + again_after;
        return agent.set_timer(n, now);
    }
    if (asked.what() == purpose::cancel) return on_cancel_reply(agent, n, reply, now);
    const auto answer = wire::read_release(reply);
    if (!answer) return give_up(agent, n, agent.nonsense(), now);
    if (answer->what == hold_answer::verdict::not_held) return agent.lose(n, errc::not_held);
    // Another grant of this id: an old copy of an upgrade ran late. Ask what the node has now.
    if (answer->what == hold_answer::verdict::held_by_other) return cancel_upgrade(agent, n, now);
    if (n.ran_out(now)) return agent.lose(n, errc::lost);
    n.has = n.change_to;
    if (!confirming::is_wanted(n)) renewing::extend_validity(agent, n, asked.written_at());
    keeping::note_waiters(agent, n, answer->waiters);
    if (n.cancelling || exceeds(n.has, n.at_most)) return send(agent, n, now);
    done(agent, n, *answer, now);
}

void on_failure(node_agent& agent, node_hold& n, const failure& why, instant now) {
    if (why.code == errc::outcome_unknown) return send(agent, n, now);  // repeatable: goes out on the next link
    give_up(agent, n, {why.code, why.detail, {}, {}}, now);
}

void on_timer(node_agent& agent, node_hold& n, instant now) {
    if (now < n.pending().change_again_at) return;
    if (n.requests) n.requests->change_again_at = never;
    send(agent, n, now);
}

void notice(node_agent& agent, node_hold& n, const hold_answer& held, instant now) {
    if (!agent.kind_of(n).has_shared_mode() || n.asks() || n.is_being_changed()) return;
    if (may_write(n.at_most) && may_write(n.has) && !may_write(held.held)) return agent.lose(n, errc::held_by_other);
    if (!exceeds(held.held, n.at_most)) return;
    agent.adopt(n, held.token);
    n.has = held.held;
    begin(agent, n, now);
}

}  // namespace holdfast::engine::changing
