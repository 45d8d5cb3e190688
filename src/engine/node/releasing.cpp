#include "engine/node/parts.hpp"

#include "base/assert.hpp"

namespace holdfast::engine::releasing {
namespace {

bool can_go_alone(node_agent& agent, const node_hold& n) {
    return agent.kind_of(n).can_release_alone() && !n.releases_in_full;
}

void send(node_agent& agent, node_hold& n, instant now) {
    HOLDFAST_ASSERT(n.pending().leaving == nullptr);
    call& request = agent.start(purpose::release, n, &node_requests::leaving);
    wire::write(
        request, agent.lock_of(n, now),
        wire::release_request{
            .id = agent.id_of(n), .token = n.token, .yield_after = milliseconds(agent.options_of(n).yield_after_ms)});
    if (can_go_alone(agent, n)) request.tell_if_moving();
    // Nobody may wait for this release, and the next request is to find the lock released. A release that undoes
    // whatever it finds goes by the same way as what it undoes, so that their order stays.
    if (n.token != 0) request.send_text_at_first();
    agent.send(request, n.valid_until);
}

void send_alone(node_agent& agent, node_hold& n, instant now) {
    n.releases_in_full = true;
    call& request = agent.start(purpose::release_alone, n, &node_requests::leaving);
    wire::write(request, agent.lock_of(n, now), wire::release_alone_request{agent.id_of(n)});
    agent.send(request, n.valid_until);
}

// An old copy of the request may yet enqueue the id again and be granted; for a lease we would hear of it.
void end(node_agent& agent, node_hold& n, const node_event& told, instant now) {
    if (n.stray_copies && n.token == 0 && now < n.valid_until) {
        agent.timers().set(n, n.valid_until);
    } else {
        agent.forget(n);
    }
    agent.tell(told);
}

// Whatever it says, the full release follows. That it found nothing may be because the slot was moved back meanwhile,
// so it is no answer to the caller.
void on_alone_reply(node_agent& agent, node_hold& n, const redis::reply_view& reply, instant now) {
    const auto answer = reply.is_error() ? std::nullopt : wire::read_release_alone(reply);
    if (!answer || answer->what != hold_answer::verdict::alone) return send(agent, n, now);
    n.release_may_have_run = true;
    agent.busy(n).release_again_at = now;
    agent.timers().set(n, now);
    agent.tell(node_event::kind::released, n);
}

void on_error(node_agent& agent, node_hold& n, const failure& why, instant now) {
    if (why.code == errc::moving && can_go_alone(agent, n)) return send_alone(agent, n, now);
    const refusal* const why_not = agent.todo().keep(refusal{why.code, why.detail, {}, {}});
    const node_event told{.what = node_event::kind::released, .at = &n, .why_not = why_not};
    if (!may_pass(why.code) || now + again_after >= n.valid_until) return end(agent, n, told, now);
    // It did not run. The caller need not wait, but others would until the lease ends.
    agent.busy(n).release_again_at = now + again_after;
    agent.timers().set(n, n.pending().release_again_at);
    agent.tell(told);
}

void on_answer(node_agent& agent, node_hold& n, const hold_answer& answer, instant now) {
    node_event told{.what = node_event::kind::released, .at = &n, .holders = answer.holders, .waiters = answer.waiters};
    // If an earlier copy may have run, not finding the hold is what success looks like.
    if (answer.what != hold_answer::verdict::done && !n.release_may_have_run) {
        const bool other = answer.what == hold_answer::verdict::held_by_other;
        told.why_not = agent.todo().keep(
            refusal{other ? errc::held_by_other : errc::not_held, "", answer.holder_left, std::string(answer.holder)});
    }
    // This release was the only one, and its answer came after that of all it undid: nothing is on its way any more.
    if (!n.release_may_have_run && !n.stray_copies) n.undone = n.orphaned_ask = false;
    end(agent, n, told, now);
}

}  // namespace

void release(node_agent& agent, node_hold& n, instant now) {
    if (n.is_gone() || n.phase == node_phase::leaving) return;
    // What the node has of this id is uncertain if a poll may run so late that it finds the lease over and enqueues
    // again, if an upgrade may be granted meanwhile, or if the node may know the hold by a token that it was told and
    // that was not adopted. Then all of it goes.
    const bool certain = n.counts() && n.pending().asking == nullptr && !n.stray_copies && !n.cancelling &&
                         n.raise_to <= n.token && !n.asks();
    if (!certain) n.token = 0;
    agent.end_acquisition(n);
    leave(agent, n, now);
}

void leave(node_agent& agent, node_hold& n, instant now) {
    agent.drop_all(n);
    // A position in the queue is nothing that could be freed alone.
    n.releases_in_full = !n.counts() && n.token == 0;
    n.phase = node_phase::leaving;
    n.undone = true;
    if (n.stray_copies) agent.mark_stray(n);
    n.release_may_have_run = false;
    n.release_repeats = 0;
    // After this the server has forgotten the hold by itself.
    n.valid_until = std::max(n.valid_until, now + agent.options_of(n).lease_at_server());
    agent.timers().set(n, n.valid_until);
    send(agent, n, now);
}

void on_reply(node_agent& agent, node_hold& n, const call& asked, const redis::reply_view& reply, instant now) {
    if (asked.what() == purpose::release_alone) return on_alone_reply(agent, n, reply, now);
    if (reply.is_error()) return on_error(agent, n, agent.classify(n, reply), now);
    if (const auto answer = wire::read_release(reply)) return on_answer(agent, n, *answer, now);
    end(agent, n, {.what = node_event::kind::released, .at = &n, .why_not = agent.todo().keep(agent.nonsense())}, now);
}

void give_back(node_agent& agent, node_hold& n, fencing_token token, instant now) {
    if (n.pending().leaving != nullptr) return;  // an undo of whatever grant is on its way
    n.token = token;
    n.releases_in_full = false;
    if (n.requests) n.requests->release_again_at = never;
    send(agent, n, now);
}

void on_failure(node_agent& agent, node_hold& n, const call& asked, const failure& why, instant now) {
    const bool unknown = why.code == errc::outcome_unknown;
    if (asked.what() == purpose::release_alone && unknown) {
        n.release_may_have_run = true;
        if (now < n.valid_until) return send(agent, n, now);
    }
    const bool may_repeat = n.release_repeats++ < agent.options_of(n).max_repeats;
    if (unknown && now < n.valid_until && may_repeat) {
        n.release_may_have_run = true;
        return send(agent, n, now);  // goes out on the next link
    }
    agent.forget(n);
    agent.tell_failed(node_event::kind::released, n, {why.code, why.detail, {}, {}});
}

void on_timer(node_agent& agent, node_hold& n, instant now) {
    if (now >= n.valid_until) {
        agent.forget(n);
        return agent.tell(node_event::kind::gone, n);
    }
    if (now >= n.pending().release_again_at) {
        if (n.requests) n.requests->release_again_at = never;
        if (n.pending().leaving == nullptr) send(agent, n, now);
    }
    agent.timers().set(n, std::min(n.valid_until, n.pending().release_again_at));
}

}  // namespace holdfast::engine::releasing
