#include "engine/node/raising.hpp"

#include "engine/hold.hpp"
#include "engine/passing.hpp"

namespace holdfast::engine {

using wire::hold_answer;

void raising::raise(node_hold& n, fencing_token to, instant now) {
    n.raise_to = to;
    send(n, now);
}

void raising::send(node_hold& n, instant now) {
    if (n.requests) n.requests->raise_again_at = never;
    core_.drop(n, &node_requests::raising);
    call& request = core_.calls().start(call::purpose::raise, n);
    wire::write(request, core_.lock_of(n, now),
                wire::raise_request{.id = core_.id_of(n), .token = n.token, .to = n.raise_to});
    request.give_up_at(n.valid_until);
    core_.busy(n).raising = &request;
    core_.send(request);
}

void raising::on_reply(node_hold& n, const redis::reply_view& reply, instant now) {
    if (reply.is_error()) return on_failure(n, core_.classify(n, reply), now);
    const auto answer = wire::read_hold(reply);
    if (!answer) return on_failure(n, {core_.nonsense().code, core_.nonsense().detail}, now);
    if (answer->what != hold_answer::verdict::done) return core_.lose(n, errc::held_by_other);
    if (n.ran_out(now)) return core_.lose(n, errc::lost);
    const bool believed = core_.kind_of(n).has_shared_mode() && may_write(n.has);
    if (believed && !may_write(answer->held)) return core_.lose(n, errc::held_by_other);
    if (!confirms_.is_wanted(n)) return done(n);
    confirms_.ask(n, &node_requests::raising, call::purpose::confirm_raise, {.token = n.raise_to});
}

void raising::on_confirmation(node_hold& n, const confirmation& said, instant now) {
    if (!said.why_not) return done(n);
    said.is_unknown ? send_later(n, now) : on_failure(n, *said.why_not, now);
}

void raising::done(node_hold& n) {
    core_.adopt(n, n.raise_to);
    core_.tell(node_event::kind::raised, n);
}

void raising::send_later(node_hold& n, instant now) {
    core_.busy(n).raise_again_at = now + again_after;
    core_.set_timer(n, now);
}

void raising::on_failure(node_hold& n, const failure& why, instant now) {
    if (n.ran_out(now)) return core_.lose(n, errc::lost);        // it was not sent before its validity ended
    if (why.code == errc::outcome_unknown) return send(n, now);  // repeatable: goes out on the next link
    if (may_pass(why.code)) return send_later(n, now);
    // A node hold that does not remember its token is no vote.
    releases_.release(n, now);
    core_.tell_failed(node_event::kind::refused, n, {why.code, why.detail, {}, {}});
}

void raising::on_timer(node_hold& n, instant now) {
    if (now >= n.pending().raise_again_at) send(n, now);
}

}  // namespace holdfast::engine
