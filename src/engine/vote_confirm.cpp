// Asking for replicas before a grant, a renewal or a greater token counts.
//
// A replica that is promoted knows what it has acknowledged. So who wants to hold on across a failover believes in a
// grant only when enough replicas have it, and in a renewal, too: an older expiry is what the others would go by. The
// proof of it is as old as it was: validity is counted from before the request that proved it, however long the
// replicas took.
//
// What too few have is undone, if it is a grant; a renewal is simply not counted, and tried again.

#include "engine/hold.hpp"
#include "engine/node_agent.hpp"
#include "engine/passing.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

bool node_agent::wants_replicas(const node_hold& b) const noexcept {
    return terms_of(b).acknowledged_by.replicas() > 0;
}

refusal node_agent::too_few_replicas() const {
    return {errc::not_replicated, settings_.server + ": too few replicas acknowledged it in time", {}, {}};
}

void node_agent::confirm(node_hold& b, call* in_flight::*slot, purpose what, const proof& shown) {
    call& question = start_call(what, b);
    question.remember(shown);
    wire::write(question, {.keys = keys_of(b), .kind = terms_of(b).kind},
                wire::confirm_request{.id = id_of(b), .token = shown.token});
    busy(b).*slot = &question;
    out_.confirm(question, keys_of(b), terms_of(b).acknowledged_by.get());
}

void node_agent::confirm_grant(node_hold& b, const proof& shown, instant now) {
    // A poll is under way. It runs after the grant that was pushed, so its answer proves more.
    if (b.in_flight().asking != nullptr) return;
    const milliseconds lease = terms_of(b).lease;
    const instant last_moment = shown.at + lease - drift(lease) - margin(lease);
    if (last_moment <= now) return ask_after_late_grant(b, now);
    node_hold::acquisition_state& q = busy(b).acquisition;
    q.at = stage::confirming;
    q.trouble = too_few_replicas();  // to tell, should it end here
    q.poll_at = std::min(last_moment, now + settings_.request_timeout);
    set_timer(b, now);
    confirm(b, &in_flight::asking, purpose::confirm_grant, shown);
}

void node_agent::confirm_renewal(node_hold& b, const proof& shown, instant now) {
    confirm(b, &in_flight::renewing, purpose::confirm_renewal, shown);
    set_timer(b, now);
}

void node_agent::renewal_confirmed(node_hold& b, const proof& shown, instant now) {
    if (ran_out(b, now)) return lose(b, errc::lost, now);
    extend_validity(b, shown.at);
    tell_renewed(b, now);
}

void node_agent::answered_confirm(node_hold& b, const call& asked, const redis::reply_view& reply, instant now) {
    const auto replicas = reply.to_integer();
    if (!replicas || *replicas < static_cast<std::int64_t>(terms_of(b).acknowledged_by.replicas())) {
        const refusal too_few = too_few_replicas();
        return not_confirmed(b, asked, {too_few.code, too_few.detail}, now);
    }
    switch (asked.what()) {
        case purpose::confirm_grant:
            return believe(b, asked.shown(), now);
        case purpose::confirm_renewal:
            return renewal_confirmed(b, asked.shown(), now);
        default:
            return raised(b, now);
    }
}

void node_agent::not_confirmed(node_hold& b, const call& asked, const failure& why, instant now) {
    // The link or the server was another, or is in trouble, or out of reach: nobody knows how many have it.
    const bool unknown = why.code == errc::outcome_unknown || may_pass(why.code) || is_silence(why.code);
    switch (asked.what()) {
        case purpose::confirm_grant:
            return unknown ? grant_not_known(b, why, now) : refuse(b, {why.code, why.detail, {}, {}}, now);
        case purpose::confirm_renewal:
            // Of a link that broke, or a server that was another: on the next one it is sent at once. Otherwise it was
            // not the renewal that failed.
            if (why.code == errc::outcome_unknown) return failed_renew(b, why, now);
            return failed_renew(b, unknown ? failure{errc::not_replicated, why.detail} : why, now);
        default:
            return unknown ? raise_later(b, now) : failed_raise(b, why, now);
    }
}

// The node is asked again, and what it then says is confirmed anew. Not for ever: meanwhile nobody has the lock.
void node_agent::grant_not_known(node_hold& b, const failure& why, instant now) {
    node_hold::acquisition_state& q = busy(b).acquisition;
    q.at = stage::queued;
    q.unknown_since = std::min(q.unknown_since, now);
    refusal reason{why.code, why.detail, {}, {}};
    if (why.code == errc::outcome_unknown) reason = too_few_replicas();
    const bool too_long = now >= q.unknown_since + terms_of(b).lease;
    if (too_long || q.repeats++ >= terms_of(b).max_repeats) return refuse(b, std::move(reason), now);
    q.trouble = std::move(reason);
    q.poll_at = now + (told_.is_asked_for(b) ? again_after : std::max(again_after, terms_of(b).lease / 10));
    set_timer(b, now);
}

bool node_agent::is_confirming(const node_hold& b, fencing_token token) noexcept {
    const call* const asked = b.in_flight().asking;
    return asked != nullptr && asked->what() == purpose::confirm_grant && asked->shown().token == token;
}

void node_agent::ask_instead(node_hold& b, instant now) {
    drop_ask(b);
    busy(b).acquisition.at = stage::queued;
    poll(b, now);
}

}  // namespace holdfast::engine
