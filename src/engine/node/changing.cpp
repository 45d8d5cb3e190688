#include "engine/node/changing.hpp"

#include "engine/hold.hpp"
#include "engine/passing.hpp"

namespace holdfast::engine {
namespace {

using purpose = call::purpose;
using wire::hold_answer;

// The node has more of it than it should.
bool exceeds(shape has, shape at_most) {
    return (may_write(has) && !may_write(at_most)) || (may_read(has) && !may_read(at_most));
}

}  // namespace

void changing::make_less(node_hold& n, shape at_most, instant now) {
    n.at_most = at_most;
    if (!n.counts()) return;
    begin(n, now);
    core_.set_timer(n, now);
}

void changing::begin(node_hold& n, instant now) {
    if (n.is_being_changed()) return;
    if (n.cancelling || exceeds(n.has, n.at_most)) return send(n, now);
    done(n, std::nullopt, now);
}

void changing::cancel_upgrade(node_hold& n, instant now) {
    n.cancelling = true;
    begin(n, now);
}

void changing::send(node_hold& n, instant now) {
    call& request = core_.calls().start(n.cancelling ? purpose::cancel : purpose::change, n);
    if (n.cancelling) {
        wire::write(request, core_.lock_of(n, now), wire::cancel_request{.id = core_.id_of(n)});
    } else {
        n.change_to = n.at_most;
        wire::write(
            request, core_.lock_of(n, now),
            wire::release_request{
                .id = core_.id_of(n), .token = n.token, .left_over = n.change_to, .lease = core_.options_of(n).lease});
        request.send_text_at_first();
    }
    request.give_up_at(n.valid_until);
    core_.busy(n).changing = &request;
    core_.send(request);
}

void changing::on_reply(node_hold& n, const call& asked, const redis::reply_view& reply, instant now) {
    if (reply.is_error()) {
        const failure why = core_.classify(n, reply);
        if (!may_pass(why.code)) return give_up(n, {why.code, why.detail, {}, {}}, now);
        core_.busy(n).change_again_at = now + again_after;
        return core_.set_timer(n, now);
    }
    if (asked.what() == purpose::cancel) return on_cancel_reply(n, reply, now);
    const auto answer = wire::read_release(reply);
    if (!answer) return give_up(n, core_.nonsense(), now);
    if (answer->what == hold_answer::verdict::not_held) return core_.lose(n, errc::not_held);
    // Another grant of this id: an old copy of an upgrade ran late. Ask what the node has now.
    if (answer->what == hold_answer::verdict::held_by_other) return cancel_upgrade(n, now);
    if (n.ran_out(now)) return core_.lose(n, errc::lost);
    n.has = n.change_to;
    if (!confirms_.is_wanted(n)) renews_.extend_validity(n, asked.written_at());
    if (n.cancelling || exceeds(n.has, n.at_most)) return send(n, now);
    done(n, answer, now);
}

void changing::on_cancel_reply(node_hold& n, const redis::reply_view& reply, instant now) {
    const auto answer = wire::read_hold(reply);
    if (!answer) return give_up(n, core_.nonsense(), now);
    if (answer->what != hold_answer::verdict::done) return core_.lose(n, errc::not_held);
    n.cancelling = false;
    core_.adopt(n, answer->token);
    n.has = answer->held;
    begin(n, now);
}

void changing::on_failure(node_hold& n, const failure& why, instant now) {
    if (why.code == errc::outcome_unknown) return send(n, now);  // repeatable: goes out on the next link
    give_up(n, {why.code, why.detail, {}, {}}, now);
}

void changing::done(node_hold& n, std::optional<hold_answer> answer, instant now) {
    core_.set_timer(n, now);
    node_event changed{.what = node_event::kind::changed, .at = &n};
    if (answer) changed.holders = answer->holders;
    if (answer) changed.waiters = answer->waiters;
    core_.tell(changed);
}

void changing::give_up(node_hold& n, refusal why, instant now) {
    // The position in the queue is still there, and may be served: what the node has is no longer known.
    if (n.cancelling) core_.mark_stray(n);
    n.cancelling = false;
    core_.set_timer(n, now);
    core_.tell_failed(node_event::kind::changed, n, std::move(why));
}

void changing::on_timer(node_hold& n, instant now) {
    if (now < n.pending().change_again_at) return;
    if (n.requests) n.requests->change_again_at = never;
    send(n, now);
}

void changing::notice(node_hold& n, const hold_answer& held, instant now) {
    if (!core_.kind_of(n).has_shared_mode() || n.asks() || n.is_being_changed()) return;
    if (may_write(n.at_most) && may_write(n.has) && !may_write(held.held)) return core_.lose(n, errc::held_by_other);
    if (!exceeds(held.held, n.at_most)) return;
    core_.adopt(n, held.token);
    n.has = held.held;
    begin(n, now);
}

}  // namespace holdfast::engine
