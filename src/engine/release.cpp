// Giving a hold up: by the holder, or by the engine for an acquisition that nobody wants any more.

#include "engine/engine.hpp"
#include "engine/passing.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

using scripts::hold_answer;

void engine::release(hold& h, access level, hold_request* request, instant answer_by, instant now) {
    HOLDFAST_ASSERT(h.levels(level) > 0);
    --(level == access::shared ? h.shared_ : h.exclusive_);
    if (h.exclusive_ + h.shared_ > 0) return release_level(h, level, request, answer_by, now);
    if (const auto listener = std::exchange(h.listener_, nullptr)) listener->on_gone();
    const auto owned = owned_.find(owned_lock{h.terms_.owner, h.terms_.keys->lock});
    if (owned != owned_.end() && owned->second == &h) owned_.erase(owned);
    const bool was_lost = h.state_ == state::lost;
    watcher_.on_released(now - h.granted_at_);
    if (was_lost) {
        // The caller is told at once; what may be left on the server is cleared all the same.
        if (request != nullptr) request->answered(refusal{errc::lost, "", {}, {}});
        request = nullptr;
    }
    // What the server has of this id is not quite known: a poll may run so late that it finds the lease over and stands
    // in line again, an upgrade may be granted meanwhile. All of it goes.
    if (was_lost || h.asking_ != nullptr || h.stray_copies_ || h.cancelling_ || h.quest_.at != stage::none)
        h.token_ = 0;
    h.release_ = request;
    h.answer_release_by_ = answer_by;
    leave(h, now);
}

// Others of its levels remain: the server hears of it only if what it has becomes less.
void engine::release_level(hold& h, access level, hold_request* request, instant answer_by, instant now) {
    const auto answer = [&](std::optional<refusal> why_not) {
        if (request != nullptr) request->answered(why_not);
    };
    if (h.state_ != state::held) return answer(refusal{errc::lost, "", {}, {}});
    const bool downgrades = level == access::exclusive && h.exclusive_ == 0;
    if (downgrades) {
        HOLDFAST_ASSERT(h.change_ == nullptr);  // until it is answered nothing is exclusive again
        h.change_ = request;
        h.answer_change_by_ = request != nullptr ? answer_by : never;
    } else {
        answer(std::nullopt);
    }
    begin_change(h, now);
    if (h.state_ == state::held) set_timer(h, now);
}

void engine::leave(hold& h, instant now) {
    drop_call(h.renewing_);
    drop_ask(h);
    drop_call(h.changing_);
    h.state_ = state::leaving;
    const refusal released{errc::not_held, "released meanwhile", {}, {}};
    answer_renewal(h, released);
    answer_change(h, released);
    if (acquire_request* const waiting_for_more = end_quest(h)) waiting_for_more->refused(released);
    if (h.stray_copies_) mark_stray(h);
    h.may_have_run_ = false;
    h.repeats_ = 0;
    // After this the server has forgotten the hold by itself.
    h.valid_until_ = std::max(h.valid_until_, now + h.terms_.lease);
    timers_.set(h, std::min(h.answer_release_by_, h.valid_until_));
    send_release(h, now);
}

void engine::send_release(hold& h, instant) {
    HOLDFAST_ASSERT(h.leaving_ == nullptr);
    call& question = start_call(purpose::release, h);
    scripts::write(question, lock_of(h), scripts::release_question{.id = h.id_.text(), .token = h.token_});
    question.give_up_at(h.valid_until_);
    h.leaving_ = &question;
    out_.submit(question);
}

void engine::answer_release(hold& h, const std::optional<refusal>& why_not) {
    if (hold_request* const asked = std::exchange(h.release_, nullptr)) asked->answered(why_not);
}

void engine::answered_release(hold& h, const redis::reply_view& reply, instant now) {
    std::optional<refusal> why_not;
    if (reply.is_error()) {
        const failure why = classify(reply);
        why_not = refusal{why.code, why.detail, {}, {}};
        if (may_pass(why.code) && now + again_after < h.valid_until_) {
            // It did not run. The caller need not wait, but others would until the lease ends.
            h.release_again_at_ = now + again_after;
            timers_.set(h, h.release_again_at_);
            return answer_release(h, why_not);
        }
    } else if (const auto answer = scripts::read_release(reply)) {
        // If an earlier copy may have run, not finding the hold is what success looks like.
        if (answer->what != hold_answer::verdict::done && !h.may_have_run_) {
            const bool other = answer->what == hold_answer::verdict::held_by_other;
            why_not = refusal{other ? errc::held_by_other : errc::not_held, "", answer->holder_left,
                              std::string(answer->holder)};
        } else if (h.release_ != nullptr) {
            h.release_->left_behind(answer->holders, answer->waiters);
        }
    } else {
        why_not = nonsense();
    }
    answer_release(h, why_not);
    // An old copy of the request may yet put the id back in line and be granted; for a lease we would hear of it.
    if (h.stray_copies_ && h.token_ == 0 && now < h.valid_until_) return timers_.set(h, h.valid_until_);
    forget(h);
}

// Granted to an id that nobody asks for any more: an old copy of its request ran after it was undone.
void engine::give_back(hold& h, fencing_token token, instant now) {
    if (h.leaving_ != nullptr) return;  // an undo of whatever grant is on its way
    h.token_ = token;
    h.release_again_at_ = never;
    send_release(h, now);
}

void engine::failed_release(hold& h, const failure& why, instant now) {
    const bool may_repeat = h.repeats_++ < h.terms_.max_repeats;
    if (why.code == errc::outcome_unknown && now < h.valid_until_ && may_repeat) {
        h.may_have_run_ = true;
        return send_release(h, now);  // goes out on the next link
    }
    answer_release(h, refusal{why.code, why.detail, {}, {}});
    forget(h);
}

void engine::check_leaving(hold& h, instant now) {
    // Nobody is left waiting for what is about to be forgotten.
    if (now >= std::min(h.answer_release_by_, h.valid_until_)) {
        h.answer_release_by_ = never;
        answer_release(
            h, refusal{errc::outcome_unknown, settings_.server + ": the release goes on in the background", {}, {}});
    }
    if (now >= h.valid_until_) return forget(h);
    if (now >= h.release_again_at_) {
        h.release_again_at_ = never;
        if (h.leaving_ == nullptr) send_release(h, now);
    }
    timers_.set(h, std::min(h.valid_until_, h.release_again_at_));
}

}  // namespace holdfast::engine
