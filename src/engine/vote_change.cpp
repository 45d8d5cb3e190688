// Holding less: a downgrade, and taking back an upgrade that nobody waits for any more.
//
// The holder believes in less from the moment it asks; the node is told until it has understood. A change names the
// token of the grant that it makes less, so that a copy that runs late cannot hurt a later one. Taking an upgrade back
// only leaves the line, and learns what was granted meanwhile: that is then made less by its token.

#include "engine/hold.hpp"
#include "engine/node_agent.hpp"
#include "engine/passing.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using wire::hold_answer;

bool writes(shape held) {
    return held == shape::writing || held == shape::both;
}

bool reads(shape held) {
    return held == shape::reading || held == shape::both;
}

// The part of `held` that is too much.
bool exceeds(shape held, shape at_most) {
    return (writes(held) && !writes(at_most)) || (reads(held) && !reads(at_most));
}

}  // namespace

void node_agent::make_less(node_hold& b, shape at_most, instant now) {
    b.at_most_ = at_most;
    if (b.state_ != state::held) return;
    begin_change(b, now);
    if (b.state_ == state::held) set_timer(b, now);
}

// Sees to it that the node has no more of it than it should; nothing if a change is under way already.
void node_agent::begin_change(node_hold& b, instant now) {
    if (b.in_flight().changing != nullptr || b.in_flight().change_again_at != never) return;
    if (b.cancelling_ || exceeds(b.shape_, b.at_most_)) return send_change(b, now);
    end_change(b, {}, now);
}

void node_agent::cancel_upgrade(node_hold& b, instant now) {
    b.cancelling_ = true;
    begin_change(b, now);
}

void node_agent::send_change(node_hold& b, instant now) {
    call& question = start_call(b.cancelling_ ? purpose::cancel : purpose::change, b);
    if (b.cancelling_) {
        wire::write(question, lock_of(b, now), wire::cancel_request{.id = id_of(b)});
    } else {
        b.change_to_ = b.at_most_;
        wire::write(question, lock_of(b, now),
                    wire::release_request{
                        .id = id_of(b), .token = b.token_, .left_over = b.change_to_, .lease = terms_of(b).lease});
        question.send_text_at_first();
    }
    question.give_up_at(b.valid_until_);
    busy(b).changing = &question;
    out_.submit(question);
}

void node_agent::answered_change(node_hold& b, const call& asked, const redis::reply_view& reply, instant now) {
    if (b.state_ != state::held) return;
    if (reply.is_error()) {
        const failure why = classify(reply);
        if (!may_pass(why.code)) return end_change(b, {refusal{why.code, why.detail, {}, {}}}, now);
        busy(b).change_again_at = now + again_after;
        return set_timer(b, now);
    }
    if (asked.what() == purpose::cancel) return answered_cancel(b, reply, now);
    const auto answer = wire::read_release(reply);
    if (!answer) return end_change(b, {nonsense()}, now);
    if (answer->what == hold_answer::verdict::not_held) return lose(b, errc::not_held, now);
    // Another grant of this id: an old copy of an upgrade ran late. What the node has now is asked.
    if (answer->what == hold_answer::verdict::held_by_other) return cancel_upgrade(b, now);
    if (ran_out(b, now)) return lose(b, errc::lost, now);
    b.shape_ = b.change_to_;
    if (!wants_replicas(b)) extend_validity(b, asked.written_at());
    if (b.cancelling_ || exceeds(b.shape_, b.at_most_)) return send_change(b, now);
    end_change(b, {std::nullopt, answer->holders, answer->waiters}, now);
}

void node_agent::answered_cancel(node_hold& b, const redis::reply_view& reply, instant now) {
    const auto answer = wire::read_hold(reply);
    if (!answer) return end_change(b, {nonsense()}, now);
    if (answer->what != hold_answer::verdict::done) return lose(b, errc::not_held, now);
    b.cancelling_ = false;
    adopt(b, answer->token);
    b.shape_ = answer->held;
    begin_change(b, now);
}

void node_agent::failed_change(node_hold& b, const failure& why, instant now) {
    if (b.state_ != state::held) return;
    if (why.code == errc::outcome_unknown) return send_change(b, now);  // repeatable: goes out on the next link
    end_change(b, {refusal{why.code, why.detail, {}, {}}}, now);
}

// Done, or given up for a reason that will not pass: then the lease ends what the node still has.
void node_agent::end_change(node_hold& b, node_answer answer, instant now) {
    // The place in line is still there, and may be served: what the node has is no longer known.
    if (answer.why_not && b.cancelling_) mark_stray(b);
    b.cancelling_ = false;
    start_deferred(b, now);
    if (b.state_ != state::held) return;
    set_timer(b, now);
    told_.changed(b, answer, now);
}

void node_agent::check_change(node_hold& b, instant now) {
    if (now < b.in_flight().change_again_at) return;
    if (b.in_flight_) b.in_flight_->change_again_at = never;
    send_change(b, now);
}

// The token by which the node knows the hold from now on.
void node_agent::adopt(node_hold& b, fencing_token token) {
    told_.saw(token);
    b.token_ = token;
}

// The node has said what it has of this hold. An upgrade that nobody asked for (an old copy ran late) is given back;
// one that is believed in and is not there is lost.
void node_agent::notice(node_hold& b, const hold_answer& held, instant now) {
    const bool settled = b.acquisition().at == stage::none && b.in_flight().changing == nullptr &&
                         b.in_flight().change_again_at == never;
    if (terms_of(b).kind != lock_kind::read_write || !settled) return;
    if (writes(b.at_most_) && writes(b.shape_) && !writes(held.held)) return lose(b, errc::held_by_other, now);
    if (!exceeds(held.held, b.at_most_)) return;
    adopt(b, held.token);
    b.shape_ = held.held;
    begin_change(b, now);
}

}  // namespace holdfast::engine
