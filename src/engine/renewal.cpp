// Keeping a hold: the watchdog, and telling the holder when it is lost.

#include "engine/engine.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using scripts::hold_answer;

// A renewal that failed for a reason that may pass is tried again after this part of the lease.
constexpr int retry_part = 10;

}  // namespace

void engine::extend_validity(hold& h, instant proved_at) {
    h.valid_until_ = std::max(h.valid_until_, proved_at + h.terms_.lease - drift(h.terms_.lease));
    if (h.terms_.renewing == renewal::automatic) {
        // A third of the lease, less up to a tenth of that, so that holds taken together do not renew together.
        const std::chrono::nanoseconds third = h.terms_.lease / 3;
        const auto jitter = static_cast<std::uint64_t>(third.count()) / 10;
        h.renew_at_ =
            proved_at + third - std::chrono::nanoseconds(static_cast<std::int64_t>(random_.next() % (jitter + 1)));
    }
    if (h.listener_ != nullptr) h.listener_->on_validity(h.valid_until_);
}

void engine::check_holding(hold& h, instant now) {
    if (now >= h.valid_until_ - margin(h.terms_.lease)) return lose(h, errc::lost);
    if (now >= h.answer_renew_by_) {
        // The renewal itself goes on; only the one who asked for it waits no longer.
        const errc why = out_.link_is_up() ? errc::request_timed_out : errc::unreachable;
        answer_renewal(h, refusal{why, settings_.server, {}, {}});
    }
    if (now >= h.renew_at_ && h.renewing_ == nullptr) send_renewal(h, now);
    check_change(h, now);
    if (h.quest_.at != stage::none) check_waiting(h, now);
    set_timer(h, now);
}

void engine::send_renewal(hold& h, instant) {
    call& question = start_call(purpose::renew, h);
    scripts::write(question, lock_of(h), scripts::renew_question{.id = h.id_.text(), .lease = h.terms_.lease});
    question.give_up_at(h.valid_until_);
    h.renewing_ = &question;
    out_.submit(question);
}

void engine::renew(hold& h, hold_request& request, instant now) {
    if (h.state_ == state::held && ran_out(h, now)) lose(h, errc::lost);
    if (h.state_ != state::held) return request.answered(refusal{errc::lost, "", {}, {}});
    if (h.renew_ != nullptr) return request.answered(refusal{errc::too_many, "a renewal is under way", {}, {}});
    h.renew_ = &request;
    h.answer_renew_by_ = now + settings_.request_timeout;
    if (h.renewing_ == nullptr) send_renewal(h, now);
    set_timer(h, now);
}

void engine::answer_renewal(hold& h, const std::optional<refusal>& why_not) {
    h.answer_renew_by_ = never;
    if (hold_request* const asked = std::exchange(h.renew_, nullptr)) asked->answered(why_not);
}

void engine::answered_renew(hold& h, const call& asked, const redis::reply_view& reply, instant now) {
    if (h.state_ != state::held) return;
    if (reply.is_error()) return failed_renew(h, classify(reply), now);
    const auto answer = scripts::read_hold(reply);
    if (!answer) return failed_renew(h, {nonsense().code, nonsense().detail}, now);
    switch (answer->what) {
        case hold_answer::verdict::done:
            if (ran_out(h, now)) return lose(h, errc::lost);  // never revived, not even by an answer that was late
            watcher_.on_renewed();
            extend_validity(h, asked.written_at());
            notice(h, *answer, now);
            if (h.state_ != state::held) return;
            set_timer(h, now);
            answer_renewal(h, std::nullopt);
            // The upgrade that is waited for has come: the script that served the line tells its caller only by this.
            if (h.state_ == state::held && h.quest_.at == stage::in_line && answer->held == scripts::shape::both) {
                upgraded(h, answer->token, asked.written_at(), now, observer::how::handed_over);
            }
            return;
        case hold_answer::verdict::not_held:
            return lose(h, errc::not_held);
        case hold_answer::verdict::held_by_other:
            return lose(h, errc::held_by_other);
    }
}

void engine::failed_renew(hold& h, const failure& why, instant now) {
    if (h.state_ != state::held) return;
    watcher_.on_renewal_failed(why);
    // Repeatable, so the unknown outcome of a lost link is simply asked again, on the next one.
    const bool unknown = why.code == errc::outcome_unknown;
    const std::chrono::nanoseconds pause = h.terms_.lease / retry_part;
    h.renew_at_ = unknown ? now : now + pause;
    if (h.terms_.renewing == renewal::none) h.renew_at_ = never;
    if (unknown && h.renew_ != nullptr && now < h.answer_renew_by_) {
        send_renewal(h, now);
    } else {
        answer_renewal(h, refusal{unknown ? errc::request_timed_out : why.code, why.detail, {}, {}});
    }
    set_timer(h, now);
}

void engine::lose(hold& h, errc why) {
    h.state_ = state::lost;
    timers_.cancel(h);
    drop_call(h.renewing_);
    drop_ask(h);
    drop_call(h.changing_);
    h.change_again_at_ = never;
    const refusal is_lost{errc::lost, "", {}, {}};
    answer_renewal(h, is_lost);
    answer_change(h, is_lost);
    watcher_.on_lost(h.terms_.keys->lock, why);
    if (h.listener_ != nullptr) h.listener_->on_lost(why);
    if (acquire_request* const waiting_for_more = end_quest(h)) waiting_for_more->refused(is_lost);
}

}  // namespace holdfast::engine
