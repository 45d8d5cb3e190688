// Giving a node's vote up: by the holder, or because nobody wants it any more.
//
// While a Cluster moves the lock's slot, the keys of the line may be missing or elsewhere, and a release does not run;
// the lock itself is one key, which is at one place or the other. So a mutex is then freed alone, and the caller need
// not wait; the release in full waits until the slot has moved, and serves the line.

#include "engine/hold.hpp"
#include "engine/node_agent.hpp"
#include "engine/passing.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

using wire::hold_answer;

void node_agent::release(node_hold& b, instant now) {
    if (b.state_ == state::gone || b.state_ == state::leaving) return;
    // What the node has of this id is not quite known: a poll may run so late that it finds the lease over and stands
    // in line again, an upgrade may be granted meanwhile, and it may know the hold by the token that it was told and
    // that was not adopted. All of it goes.
    const bool certain = b.state_ == state::held && b.in_flight().asking == nullptr && !b.stray_copies_ &&
                         !b.cancelling_ && b.raise_to_ <= b.token_ && b.acquisition().at == stage::none;
    if (!certain) b.token_ = 0;
    end_acquisition(b);
    leave(b, now);
}

void node_agent::leave(node_hold& b, instant now) {
    drop_call(b, &in_flight::renewing);
    drop_ask(b);
    drop_call(b, &in_flight::changing);
    drop_call(b, &in_flight::raising);
    // Whoever only gives up a place in line has nothing that could be freed alone.
    b.goes_in_full_ = b.state_ != state::held && b.token_ == 0;
    b.state_ = state::leaving;
    b.undone_ = true;
    if (b.in_flight_) b.in_flight_->raise_again_at = never;
    if (b.stray_copies_) mark_stray(b);
    b.may_have_run_ = false;
    b.repeats_ = 0;
    // After this the server has forgotten the hold by itself.
    b.valid_until_ = std::max(b.valid_until_, now + terms_of(b).lease);
    timers_.set(b, b.valid_until_);
    send_release(b, now);
}

void node_agent::send_release(node_hold& b, instant now) {
    HOLDFAST_ASSERT(b.in_flight().leaving == nullptr);
    call& question = start_call(purpose::release, b);
    wire::write(question, lock_of(b, now),
                wire::release_request{
                    .id = id_of(b), .token = b.token_, .yield_after = milliseconds(terms_of(b).yield_after_ms)});
    question.give_up_at(b.valid_until_);
    if (can_go_alone(b)) question.tell_if_moving();
    // Nobody may be waiting for it, and whoever asks next is to find the lock released. One that undoes whatever it
    // finds goes as what it undoes did, so that nothing changes their order.
    if (b.token_ != 0) question.send_text_at_first();
    busy(b).leaving = &question;
    out_.submit(question);
}

bool node_agent::can_go_alone(const node_hold& b) const noexcept {
    return terms_of(b).kind == lock_kind::mutex && !b.goes_in_full_;
}

void node_agent::release_alone(node_hold& b, instant now) {
    b.goes_in_full_ = true;
    call& question = start_call(purpose::release_alone, b);
    wire::write(question, lock_of(b, now), wire::release_alone_request{id_of(b)});
    question.give_up_at(b.valid_until_);
    busy(b).leaving = &question;
    out_.submit(question);
}

// Whatever it says, the release in full follows. That it found nothing may be because the slot was moved back
// meanwhile, so it is no answer to the caller.
void node_agent::answered_release_alone(node_hold& b, const redis::reply_view& reply, instant now) {
    const auto answer = reply.is_error() ? std::nullopt : wire::read_release_alone(reply);
    if (!answer || answer->what != hold_answer::verdict::alone) return send_release(b, now);
    b.may_have_run_ = true;
    busy(b).release_again_at = now;
    timers_.set(b, now);
    told_.released(b, {}, now);
}

void node_agent::failed_release_alone(node_hold& b, const failure& why, instant now) {
    if (why.code == errc::outcome_unknown) b.may_have_run_ = true;
    if (why.code == errc::outcome_unknown && now < b.valid_until_) return send_release(b, now);
    failed_release(b, why, now);
}

void node_agent::answered_release(node_hold& b, const redis::reply_view& reply, instant now) {
    node_answer told;
    if (reply.is_error()) {
        const failure why = classify(reply);
        if (why.code == errc::moving && can_go_alone(b)) return release_alone(b, now);
        told.why_not = refusal{why.code, why.detail, {}, {}};
        if (may_pass(why.code) && now + again_after < b.valid_until_) {
            // It did not run. The caller need not wait, but others would until the lease ends.
            busy(b).release_again_at = now + again_after;
            timers_.set(b, b.in_flight().release_again_at);
            return told_.released(b, told, now);
        }
    } else if (const auto answer = wire::read_release(reply)) {
        // If an earlier copy may have run, not finding the hold is what success looks like.
        if (answer->what != hold_answer::verdict::done && !b.may_have_run_) {
            const bool other = answer->what == hold_answer::verdict::held_by_other;
            told.why_not = refusal{other ? errc::held_by_other : errc::not_held, "", answer->holder_left,
                                   std::string(answer->holder)};
        }
        told.holders = answer->holders;
        told.waiters = answer->waiters;
        // The only one that was sent, and its answer came after that of all it undid: nothing is on its way any more.
        if (!b.may_have_run_ && !b.stray_copies_) b.undone_ = b.orphaned_ask_ = false;
    } else {
        told.why_not = nonsense();
    }
    // An old copy of the request may yet put the id back in line and be granted; for a lease we would hear of it.
    if (b.stray_copies_ && b.token_ == 0 && now < b.valid_until_) {
        timers_.set(b, b.valid_until_);
    } else {
        forget(b);
    }
    told_.released(b, told, now);
}

// Granted to an id that nobody asks for any more: an old copy of its request ran after it was undone.
void node_agent::give_back(node_hold& b, fencing_token token, instant now) {
    if (b.in_flight().leaving != nullptr) return;  // an undo of whatever grant is on its way
    b.token_ = token;
    b.goes_in_full_ = false;
    if (b.in_flight_) b.in_flight_->release_again_at = never;
    send_release(b, now);
}

void node_agent::failed_release(node_hold& b, const failure& why, instant now) {
    const bool may_repeat = b.repeats_++ < terms_of(b).max_repeats;
    if (why.code == errc::outcome_unknown && now < b.valid_until_ && may_repeat) {
        b.may_have_run_ = true;
        return send_release(b, now);  // goes out on the next link
    }
    forget(b);
    told_.released(b, {refusal{why.code, why.detail, {}, {}}}, now);
}

void node_agent::check_leaving(node_hold& b, instant now) {
    if (now >= b.valid_until_) {
        forget(b);
        return told_.gone(b);
    }
    if (now >= b.in_flight().release_again_at) {
        if (b.in_flight_) b.in_flight_->release_again_at = never;
        if (b.in_flight().leaving == nullptr) send_release(b, now);
    }
    timers_.set(b, std::min(b.valid_until_, b.in_flight().release_again_at));
}

void node_agent::abandon(node_hold& b) {
    if (b.state_ != state::gone) forget(b);
}

void node_agent::forget(node_hold& b) {
    drop_call(b, &in_flight::asking);
    drop_call(b, &in_flight::renewing);
    drop_call(b, &in_flight::changing);
    drop_call(b, &in_flight::leaving);
    drop_call(b, &in_flight::raising);
    spare_in_flight_.give_back(std::move(b.in_flight_));
    timers_.cancel(b);
    stop_listening(b);
    b.state_ = state::gone;
    node_holds_.erase(node_holds_.iterator_to(b));
}

}  // namespace holdfast::engine
