#include "engine/node/node_agent.hpp"

#include "engine/hold.hpp"
#include "wire/push.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

using purpose = call::purpose;

node_agent::node_agent(node_settings settings, const node_surroundings& where, outbox& out)
    : core_(std::move(settings), where, out, *this),
      confirms_(core_),
      renews_(core_, confirms_),
      changes_(core_, confirms_, renews_),
      releases_(core_),
      acquires_(core_, confirms_, renews_, changes_, releases_),
      raises_(core_, confirms_, releases_),
      todo_(where.todo),
      timers_(core_.timers()) {}

node_agent::~node_agent() {
    core_.holds().clear();
}

// --- what the quorum asks for

void node_agent::make_less(node_hold& n, shape at_most, instant now) {
    changes_.make_less(n, at_most, now);
    acquires_.start_deferred(n, now);
}

void node_agent::let_run_out(node_hold& n, instant now) {
    if (n.asks()) acquires_.give_up(n, now);
    if (n.counts()) renews_.stop(n, now);
}

void node_agent::abandon(node_hold& n) {
    if (!n.is_gone()) core_.forget(n);
}

void node_agent::keep_listening(const lock_keys& lock) {
    core_.wakes().enter(lock);
    core_.wakes().subscribe(lock);
}

void node_agent::want_link(const node_hold& n) {
    core_.want_link(n);
}

milliseconds node_agent::recovers_in(const lock_keys& lock, instant now) const {
    const auto left = std::max(core_.node().trusted_from(lock) - now, std::chrono::nanoseconds(0));
    return std::chrono::ceil<milliseconds>(left);
}

// --- answers

void node_agent::on_reply(call& asked, const redis::reply_view& reply, instant now) {
    if (node_hold* const n = asked.take_subject()) dispatch(*n, asked, reply, now);
    end(asked);
    todo_.run(now);
}

void node_agent::on_failure(call& asked, const failure& why, instant now) {
    if (node_hold* const n = asked.take_subject()) dispatch(*n, asked, why, now);
    end(asked);
    todo_.run(now);
}

void node_agent::dispatch(node_hold& n, const call& asked, const redis::reply_view& reply, instant now) {
    switch (asked.what()) {
        case purpose::acquire:
            return acquires_.on_reply(n, asked, reply, now);
        case purpose::release:
        case purpose::release_alone:
            return releases_.on_reply(n, asked, reply, now);
        case purpose::renew:
        case purpose::renew_again:
        case purpose::renew_alone:
            return on_renewal(n, asked, reply, now);
        case purpose::change:
        case purpose::cancel:
            if (n.counts()) changes_.on_reply(n, asked, reply, now);
            return acquires_.start_deferred(n, now);
        case purpose::raise:
            if (n.counts()) raises_.on_reply(n, reply, now);
            return acquires_.start_deferred(n, now);
        case purpose::confirm_grant:
        case purpose::confirm_renewal:
        case purpose::confirm_raise:
            return confirmed(n, asked, confirms_.judge(n, reply), now);
    }
}

void node_agent::dispatch(node_hold& n, const call& asked, const failure& why, instant now) {
    switch (asked.what()) {
        case purpose::acquire:
            return acquires_.on_failure(n, why, now);
        case purpose::release:
        case purpose::release_alone:
            return releases_.on_failure(n, asked, why, now);
        case purpose::renew:
        case purpose::renew_again:
        case purpose::renew_alone:
            if (n.counts()) renews_.on_failure(n, why, now);
            return;
        case purpose::change:
        case purpose::cancel:
            if (n.counts()) changes_.on_failure(n, why, now);
            return acquires_.start_deferred(n, now);
        case purpose::raise:
            if (n.counts()) raises_.on_failure(n, why, now);
            return acquires_.start_deferred(n, now);
        case purpose::confirm_grant:
        case purpose::confirm_renewal:
        case purpose::confirm_raise:
            return confirmed(n, asked, confirms_.judge(why), now);
    }
}

void node_agent::confirmed(node_hold& n, const call& asked, const confirmation& said, instant now) {
    if (asked.what() == purpose::confirm_grant) return acquires_.on_confirmation(n, asked, said, now);
    if (!n.counts()) return;
    if (asked.what() == purpose::confirm_renewal) return renews_.on_confirmation(n, asked, said, now);
    raises_.on_confirmation(n, said, now);
    acquires_.start_deferred(n, now);
}

void node_agent::on_renewal(node_hold& n, const call& asked, const redis::reply_view& reply, instant now) {
    if (!n.counts()) return;
    const auto answer = renews_.on_reply(n, asked, reply, now);
    if (!answer) return;
    changes_.notice(n, *answer, now);
    if (n.counts()) renews_.found(n, asked, *answer, now);
    acquires_.on_renewed(n, *answer, asked.written_at(), now);
}

// --- other events

void node_agent::on_link_up(const lock_set& which, instant now) {
    was_reached_ = true;
    for (auto next = core_.holds().begin(); next != core_.holds().end();) {
        node_hold& n = *next++;  // first: a refusal takes it out of the list
        if (which.has(core_.keys_of(n))) acquires_.on_link_up(n, now);
    }
}

void node_agent::on_link_down(const lock_set& which) {
    for (node_hold& n : core_.holds()) {
        if ((!n.requests && !n.orphaned_ask) || !which.has(core_.keys_of(n))) continue;
        if (n.requests) n.requests->acquisition.polled_on_this_link = false;
        if (n.orphaned_ask) core_.mark_stray(n);
    }
}

void node_agent::on_subscription_refused(const failure& why, const lock_set& which, instant now) {
    core_.wakes().refused(which);
    for (auto next = core_.holds().begin(); next != core_.holds().end();) {
        node_hold& n = *next++;  // first: a refusal takes it out of the list
        if (which.has(core_.keys_of(n))) acquires_.on_subscription_refused(n, why, now);
    }
}

// ["message" or "smessage", channel, text]
void node_agent::on_push(const redis::reply_view& message, instant now) {
    if (message.size() < 3 || message[0].text() != core_.wakes().push_kind()) return;
    const std::string_view channel = message[1].text();
    wire::push_reader push(message[2].text());
    while (const auto item = push.next()) {
        const pushed_grant which{channel, item->id, item->token};
        if (push.kind() == wire::push_kind::revoked) return revoked(which, now);
        if (push.kind() == wire::push_kind::recall) return recalled(which);
        node_hold* const found = core_.find_waiter(item->id);
        if (found == nullptr || core_.wakes().of(core_.keys_of(*found)) != channel) continue;
        if (push.kind() == wire::push_kind::grant) acquires_.on_push(*found, item->token, now);
        if (push.kind() == wire::push_kind::poll && found->is_queued()) acquires_.poll(*found, now);
    }
}

// An operator has ended this grant. One whose replicas are being asked for is not believed in yet: ask where it stands.
void node_agent::revoked(const pushed_grant& which, instant now) {
    for (node_hold& n : core_.holds()) {
        const bool believed = n.counts() && (which.token == 0 || n.token == which.token);
        if (!believed && !acquires_.is_confirming(n, which.token)) continue;
        if (!is_meant(n, which)) continue;
        if (believed) return core_.lose(n, errc::not_held);
        return acquires_.on_revoked(n, now);
    }
}

// An operator wants this grant back, and waits for its holder to stop and release it.
void node_agent::recalled(const pushed_grant& which) {
    for (node_hold& n : core_.holds()) {
        const bool believed = n.counts() && (which.token == 0 || n.token == which.token);
        if (believed && is_meant(n, which)) return core_.tell(node_event::kind::recalled, n);
    }
}

bool node_agent::is_meant(const node_hold& n, const pushed_grant& which) {
    return std::string_view(core_.id_of(n)) == which.id && core_.wakes().of(core_.keys_of(n)) == which.channel;
}

void node_agent::on_timer(instant now) {
    while (timed* const due = timers_.take_due(now)) {
        node_hold& n = static_cast<node_hold&>(*due);
        switch (n.phase) {
            case node_phase::wanted:
                acquires_.on_timer(n, now);
                break;
            case node_phase::held:
                check_holding(n, now);
                break;
            case node_phase::leaving:
                releases_.on_timer(n, now);
                break;
            case node_phase::lost:
            case node_phase::gone:
                break;
        }
    }
}

void node_agent::check_holding(node_hold& n, instant now) {
    if (now >= n.valid_until - core_.margin(core_.options_of(n).lease)) return core_.lose(n, errc::lost);
    renews_.on_timer(n, now);
    changes_.on_timer(n, now);
    raises_.on_timer(n, now);
    core_.set_timer(n, now);
    acquires_.on_timer(n, now);
}

}  // namespace holdfast::engine
