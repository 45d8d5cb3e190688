// One token for all: a node's vote gets the greater token that another node gave for the same hold.
//
// What a majority knows as the token of a hold, every later majority will exceed. Where the proposed token was taken by
// all that is so without a further word; otherwise the greatest is written to those that have less.

#include "engine/hold.hpp"
#include "engine/node_agent.hpp"
#include "engine/passing.hpp"

namespace holdfast::engine {

using wire::hold_answer;

void node_agent::raise(node_hold& b, fencing_token to, instant now) {
    b.raise_to_ = to;
    send_raise(b, now);
}

void node_agent::send_raise(node_hold& b, instant now) {
    if (b.in_flight_) b.in_flight_->raise_again_at = never;
    drop_call(b, &in_flight::raising);  // the answer that said to try again may have ended the link, and so begun one
    call& question = start_call(purpose::raise, b);
    wire::write(question, lock_of(b, now), wire::raise_request{.id = id_of(b), .token = b.token_, .to = b.raise_to_});
    question.give_up_at(b.valid_until_);
    busy(b).raising = &question;
    out_.submit(question);
}

void node_agent::answered_raise(node_hold& b, const redis::reply_view& reply, instant now) {
    if (b.state_ != state::held) return;
    if (reply.is_error()) return failed_raise(b, classify(reply), now);
    const auto answer = wire::read_hold(reply);
    if (!answer) return failed_raise(b, {nonsense().code, nonsense().detail}, now);
    if (answer->what != hold_answer::verdict::done) return lose(b, errc::held_by_other, now);
    if (ran_out(b, now)) return lose(b, errc::lost, now);
    const bool believed = terms_of(b).kind == lock_kind::read_write && node_hold::may_write(b.shape_);
    if (believed && !node_hold::may_write(answer->held)) return lose(b, errc::held_by_other, now);
    if (wants_replicas(b)) return confirm(b, &in_flight::raising, purpose::confirm_raise, {.token = b.raise_to_});
    raised(b, now);
}

void node_agent::raised(node_hold& b, instant now) {
    adopt(b, b.raise_to_);
    start_deferred(b, now);
    if (b.state_ == state::held) told_.raised(b, now);
}

void node_agent::raise_later(node_hold& b, instant now) {
    busy(b).raise_again_at = now + again_after;
    set_timer(b, now);
}

void node_agent::failed_raise(node_hold& b, const failure& why, instant now) {
    if (b.state_ != state::held) return;
    if (ran_out(b, now)) return lose(b, errc::lost, now);              // it was not sent before its validity ended
    if (why.code == errc::outcome_unknown) return send_raise(b, now);  // repeatable: goes out on the next link
    if (may_pass(why.code)) return raise_later(b, now);
    // A vote that does not remember its token is none.
    release(b, now);
    told_.refused(b, {why.code, why.detail, {}, {}}, now);
}

}  // namespace holdfast::engine
