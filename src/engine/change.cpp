// Holding less: a downgrade, and taking back an upgrade that nobody waits for any more.
//
// The holder believes in less from the moment it asks; the server is told until it has understood. A change names the
// token of the grant that it makes less, so that a copy that runs late cannot hurt a later one. Taking an upgrade back
// only leaves the line, and learns what was granted meanwhile: that is then made less by its token.

#include "engine/engine.hpp"
#include "engine/passing.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using scripts::hold_answer;

bool writes(shape held) {
    return held == shape::writing || held == shape::both;
}

}  // namespace

void engine::downgrade(hold& h, hold_request& request, instant answer_by, instant now) {
    ++h.shared_;
    release(h, access::exclusive, &request, answer_by, now);
}

// Sees to it that the server has no more of the hold than its levels say; nothing if a change is under way already.
void engine::begin_change(hold& h, instant now) {
    if (h.changing_ != nullptr || h.change_again_at_ != never) return;
    if (h.cancelling_ || (h.exclusive_ == 0 && writes(h.shape_)) || (h.shared_ == 0 && h.shape_ == shape::both)) {
        return send_change(h, now);
    }
    end_change(h, std::nullopt, now);
}

void engine::cancel_upgrade(hold& h, instant now) {
    h.cancelling_ = true;
    begin_change(h, now);
}

void engine::send_change(hold& h, instant) {
    call& question = start_call(h.cancelling_ ? purpose::cancel : purpose::change, h);
    if (h.cancelling_) {
        scripts::write(question, lock_of(h), scripts::cancel_question{.id = h.id_.text()});
    } else {
        h.change_to_ = h.exclusive_ == 0 ? shape::reading : shape::writing;
        scripts::write(question, lock_of(h),
                       scripts::release_question{
                           .id = h.id_.text(), .token = h.token_, .left_over = h.change_to_, .lease = h.terms_.lease});
    }
    question.give_up_at(h.valid_until_);
    h.changing_ = &question;
    out_.submit(question);
}

void engine::answered_change(hold& h, const call& asked, const redis::reply_view& reply, instant now) {
    if (h.state_ != state::held) return;
    if (reply.is_error()) {
        const failure why = classify(reply);
        if (!may_pass(why.code)) return end_change(h, refusal{why.code, why.detail, {}, {}}, now);
        h.change_again_at_ = now + again_after;
        return set_timer(h, now);
    }
    if (asked.what() == purpose::cancel) return answered_cancel(h, reply, now);
    const auto answer = scripts::read_release(reply);
    if (!answer) return end_change(h, nonsense(), now);
    if (answer->what == hold_answer::verdict::not_held) return lose(h, errc::not_held);
    // Another grant of this id: an old copy of an upgrade ran late. What the server has now is asked.
    if (answer->what == hold_answer::verdict::held_by_other) return cancel_upgrade(h, now);
    if (ran_out(h, now)) return lose(h, errc::lost);
    h.shape_ = h.change_to_;
    extend_validity(h, asked.written_at());
    if (h.change_ != nullptr) h.change_->left_behind(answer->holders, answer->waiters);
    begin_change(h, now);
}

void engine::answered_cancel(hold& h, const redis::reply_view& reply, instant now) {
    const auto answer = scripts::read_hold(reply);
    if (!answer) return end_change(h, nonsense(), now);
    if (answer->what != hold_answer::verdict::done) return lose(h, errc::not_held);
    h.cancelling_ = false;
    adopt(h, answer->token);
    h.shape_ = answer->held;
    begin_change(h, now);
}

void engine::failed_change(hold& h, const failure& why, instant now) {
    if (h.state_ != state::held) return;
    if (why.code == errc::outcome_unknown) return send_change(h, now);  // repeatable: goes out on the next link
    end_change(h, refusal{why.code, why.detail, {}, {}}, now);
}

// Done, or given up for a reason that will not pass: then the lease ends what the server still has.
void engine::end_change(hold& h, const std::optional<refusal>& why_not, instant now) {
    // The place in line is still there, and may be served: what the server has is no longer known.
    if (why_not && h.cancelling_) mark_stray(h);
    h.cancelling_ = false;
    answer_change(h, why_not);
    if (h.quest_.at == stage::deferred) {
        h.quest_.at = stage::asking;
        ask(h, now);
    }
    if (h.state_ == state::held) set_timer(h, now);
}

void engine::check_change(hold& h, instant now) {
    if (now >= h.answer_change_by_) {
        answer_change(
            h, refusal{errc::outcome_unknown, settings_.server + ": the downgrade goes on in the background", {}, {}});
    }
    if (now < h.change_again_at_) return;
    h.change_again_at_ = never;
    send_change(h, now);
}

void engine::answer_change(hold& h, const std::optional<refusal>& why_not) {
    h.answer_change_by_ = never;
    if (hold_request* const asked = std::exchange(h.change_, nullptr)) asked->answered(why_not);
}

// The token by which the server knows the hold from now on.
void engine::adopt(hold& h, fencing_token token) {
    floor_ = std::max(floor_, token);
    h.token_ = token;
    if (h.listener_ != nullptr) h.listener_->on_token(token);
}

// The server has said what it has of this hold. An upgrade that nobody asked for (an old copy ran late) is given back;
// one that is believed in and is not there is lost.
void engine::notice(hold& h, const hold_answer& held, instant now) {
    const bool settled = h.quest_.at == stage::none && h.changing_ == nullptr && h.change_again_at_ == never;
    if (h.terms_.kind != lock_kind::read_write || !settled) return;
    if (h.exclusive_ > 0) {
        if (!writes(held.held)) lose(h, errc::held_by_other);
        return;
    }
    if (!writes(held.held)) return;
    adopt(h, held.token);
    h.shape_ = held.held;
    begin_change(h, now);
}

}  // namespace holdfast::engine
