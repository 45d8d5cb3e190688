#include "engine/node/releasing.hpp"

#include "base/assert.hpp"
#include "engine/hold.hpp"
#include "engine/passing.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using purpose = call::purpose;
using wire::hold_answer;

}  // namespace

void releasing::release(node_hold& n, instant now) {
    if (n.is_gone() || n.phase == node_phase::leaving) return;
    // What the node has of this id is uncertain if a poll may run so late that it finds the lease over and enqueues
    // again, if an upgrade may be granted meanwhile, or if the node may know the hold by a token that it was told and
    // that was not adopted. Then all of it goes.
    const bool certain = n.counts() && n.pending().asking == nullptr && !n.stray_copies && !n.cancelling &&
                         n.raise_to <= n.token && !n.asks();
    if (!certain) n.token = 0;
    core_.end_acquisition(n);
    leave(n, now);
}

void releasing::leave(node_hold& n, instant now) {
    core_.drop(n, &node_requests::renewing);
    core_.drop_ask(n);
    core_.drop(n, &node_requests::changing);
    core_.drop(n, &node_requests::raising);
    // A position in the queue is nothing that could be freed alone.
    n.releases_in_full = !n.counts() && n.token == 0;
    n.phase = node_phase::leaving;
    n.undone = true;
    if (n.requests) n.requests->raise_again_at = never;
    if (n.stray_copies) core_.mark_stray(n);
    n.release_may_have_run = false;
    n.release_repeats = 0;
    // After this the server has forgotten the hold by itself.
    n.valid_until = std::max(n.valid_until, now + core_.options_of(n).lease);
    core_.timers().set(n, n.valid_until);
    send(n, now);
}

void releasing::send(node_hold& n, instant now) {
    HOLDFAST_ASSERT(n.pending().leaving == nullptr);
    call& request = core_.calls().start(purpose::release, n);
    wire::write(
        request, core_.lock_of(n, now),
        wire::release_request{
            .id = core_.id_of(n), .token = n.token, .yield_after = milliseconds(core_.options_of(n).yield_after_ms)});
    request.give_up_at(n.valid_until);
    if (can_go_alone(n)) request.tell_if_moving();
    // Nobody may wait for this release, and the next request is to find the lock released. A release that undoes
    // whatever it finds goes by the same way as what it undoes, so that their order stays.
    if (n.token != 0) request.send_text_at_first();
    core_.busy(n).leaving = &request;
    core_.send(request);
}

bool releasing::can_go_alone(const node_hold& n) const noexcept {
    return core_.kind_of(n).can_release_alone() && !n.releases_in_full;
}

void releasing::send_alone(node_hold& n, instant now) {
    n.releases_in_full = true;
    call& request = core_.calls().start(purpose::release_alone, n);
    wire::write(request, core_.lock_of(n, now), wire::release_alone_request{core_.id_of(n)});
    request.give_up_at(n.valid_until);
    core_.busy(n).leaving = &request;
    core_.send(request);
}

void releasing::on_reply(node_hold& n, const call& asked, const redis::reply_view& reply, instant now) {
    if (asked.what() == purpose::release_alone) return on_alone_reply(n, reply, now);
    if (reply.is_error()) return on_error(n, core_.classify(n, reply), now);
    if (const auto answer = wire::read_release(reply)) return on_answer(n, *answer, now);
    node_event told{.what = node_event::kind::released, .at = &n};
    told.why_not = core_.todo().keep(core_.nonsense());
    end(n, told, now);
}

// Whatever it says, the full release follows. That it found nothing may be because the slot was moved back meanwhile,
// so it is no answer to the caller.
void releasing::on_alone_reply(node_hold& n, const redis::reply_view& reply, instant now) {
    const auto answer = reply.is_error() ? std::nullopt : wire::read_release_alone(reply);
    if (!answer || answer->what != hold_answer::verdict::alone) return send(n, now);
    n.release_may_have_run = true;
    core_.busy(n).release_again_at = now;
    core_.timers().set(n, now);
    core_.tell(node_event::kind::released, n);
}

void releasing::on_error(node_hold& n, const failure& why, instant now) {
    if (why.code == errc::moving && can_go_alone(n)) return send_alone(n, now);
    node_event told{.what = node_event::kind::released, .at = &n};
    told.why_not = core_.todo().keep(refusal{why.code, why.detail, {}, {}});
    if (!may_pass(why.code) || now + again_after >= n.valid_until) return end(n, told, now);
    // It did not run. The caller need not wait, but others would until the lease ends.
    core_.busy(n).release_again_at = now + again_after;
    core_.timers().set(n, n.pending().release_again_at);
    core_.tell(told);
}

void releasing::on_answer(node_hold& n, const hold_answer& answer, instant now) {
    node_event told{.what = node_event::kind::released, .at = &n};
    // If an earlier copy may have run, not finding the hold is what success looks like.
    if (answer.what != hold_answer::verdict::done && !n.release_may_have_run) {
        const bool other = answer.what == hold_answer::verdict::held_by_other;
        told.why_not = core_.todo().keep(
            refusal{other ? errc::held_by_other : errc::not_held, "", answer.holder_left, std::string(answer.holder)});
    }
    told.holders = answer.holders;
    told.waiters = answer.waiters;
    // This release was the only one, and its answer came after that of all it undid: nothing is on its way any more.
    if (!n.release_may_have_run && !n.stray_copies) n.undone = n.orphaned_ask = false;
    end(n, told, now);
}

// An old copy of the request may yet enqueue the id again and be granted; for a lease we would hear of it.
void releasing::end(node_hold& n, const node_event& told, instant now) {
    if (n.stray_copies && n.token == 0 && now < n.valid_until) {
        core_.timers().set(n, n.valid_until);
    } else {
        core_.forget(n);
    }
    core_.tell(told);
}

void releasing::give_back(node_hold& n, fencing_token token, instant now) {
    if (n.pending().leaving != nullptr) return;  // an undo of whatever grant is on its way
    n.token = token;
    n.releases_in_full = false;
    if (n.requests) n.requests->release_again_at = never;
    send(n, now);
}

void releasing::on_failure(node_hold& n, const call& asked, const failure& why, instant now) {
    const bool unknown = why.code == errc::outcome_unknown;
    if (asked.what() == purpose::release_alone && unknown) {
        n.release_may_have_run = true;
        if (now < n.valid_until) return send(n, now);
    }
    const bool may_repeat = n.release_repeats++ < core_.options_of(n).max_repeats;
    if (unknown && now < n.valid_until && may_repeat) {
        n.release_may_have_run = true;
        return send(n, now);  // goes out on the next link
    }
    core_.forget(n);
    core_.tell_failed(node_event::kind::released, n, {why.code, why.detail, {}, {}});
}

void releasing::on_timer(node_hold& n, instant now) {
    if (now >= n.valid_until) {
        core_.forget(n);
        return core_.tell(node_event::kind::gone, n);
    }
    if (now >= n.pending().release_again_at) {
        if (n.requests) n.requests->release_again_at = never;
        if (n.pending().leaving == nullptr) send(n, now);
    }
    core_.timers().set(n, std::min(n.valid_until, n.pending().release_again_at));
}

}  // namespace holdfast::engine
