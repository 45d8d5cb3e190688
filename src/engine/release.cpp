// Giving a hold up: by the holder, or by the engine for an acquisition that nobody wants any more.

#include "engine/engine.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using scripts::mutex::hold_answer;

// A release that the server refused for a reason that may pass is tried again so much later.
constexpr milliseconds release_again_after{100};

bool may_pass(errc code) {
    switch (code) {
        case errc::busy_script:
        case errc::loading:
        case errc::misconfigured:
        case errc::out_of_memory:
        case errc::read_only:
            return true;
        default:
            return false;
    }
}

}  // namespace

void engine::release(hold& h, hold_request* request, instant answer_by, instant now) {
    if (--h.depth_ > 0) {
        if (request != nullptr) {
            request->answered(h.state_ == state::lost ? std::optional(refusal{errc::lost, "", {}, {}}) : std::nullopt);
        }
        return;
    }
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
    // A copy of a poll may run so late that it finds the lease over, and stands in line again: that place is
    // given up too.
    if (was_lost || h.asking_ != nullptr || h.stray_copies_) h.token_ = 0;
    h.release_ = request;
    h.answer_release_by_ = answer_by;
    leave(h, now);
}

void engine::leave(hold& h, instant now) {
    drop_call(h.renewing_);
    drop_call(h.asking_);
    answer_renewal(h, refusal{errc::not_held, "released meanwhile", {}, {}});
    h.state_ = state::leaving;
    // A grant that an old copy of the request gets is pushed to this id, and given back.
    if (h.stray_copies_) in_line_.emplace(h.id_.text(), &h);
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
    scripts::mutex::write(question, *h.terms_.keys,
                          scripts::mutex::release_question{
                              .id = h.id_.text(), .token = h.token_, .fence_retention = settings_.fence_retention});
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
        if (may_pass(why.code) && now + release_again_after < h.valid_until_) {
            // It did not run. The caller need not wait, but others would until the lease ends.
            h.release_again_at_ = now + release_again_after;
            timers_.set(h, h.release_again_at_);
            return answer_release(h, why_not);
        }
    } else if (const auto answer = scripts::mutex::read_hold(reply)) {
        // If an earlier copy may have run, not finding the hold is what success looks like.
        if (answer->what != hold_answer::verdict::done && !h.may_have_run_) {
            const bool other = answer->what == hold_answer::verdict::held_by_other;
            why_not = refusal{other ? errc::held_by_other : errc::not_held, "", answer->holder_left,
                              std::string(answer->holder)};
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
        if (h.orphaned_ask_ && !h.stray_copies_) {  // it broke with the same link: now it is a stray copy
            h.stray_copies_ = true;
            in_line_.emplace(h.id_.text(), &h);
        }
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
