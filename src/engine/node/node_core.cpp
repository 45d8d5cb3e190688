#include "engine/node/node_core.hpp"

#include "engine/hold.hpp"
#include "redis/resp/error_reply.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

node_core::node_core(node_settings settings, const node_surroundings& where, outbox& out, node_agent& owner)
    : settings_(std::move(settings)),
      where_(where),
      out_(out),
      wakes_(settings_.listens, where.client.text(), out, where.todo),
      calls_(owner) {}

const hold_terms& node_core::terms_of(const node_hold& n) noexcept {
    return n.whole->terms();
}

hold_id::spelled node_core::id_of(const node_hold& n) const noexcept {
    return n.whole->id().spell(where_.client);
}

wire::lock_terms node_core::lock_of(const node_hold& n, instant now) const {
    const hold_terms& terms = terms_of(n);
    return {.keys = *terms.keys,
            .kind = terms.options.kind,
            .prefer = terms.options.prefer,
            .fence_retention = settings_.fence_retention,
            .proposal = where_.clock.proposal(now)};
}

node_requests& node_core::busy(node_hold& n) {
    if (!n.requests) n.requests = spare_requests_.take();
    return *n.requests;
}

// A node hold that is simply held has nothing pending, and needs no memory for it.
void node_core::rest_if_idle(node_hold& n) noexcept {
    if (n.requests && n.requests->idle()) spare_requests_.give_back(std::move(n.requests));
}

void node_core::set_timer(node_hold& n, instant now) {
    rest_if_idle(n);
    instant due = std::min(n.acquisition().limit.deadline, n.acquisition().poll_at);
    if (n.counts()) {
        const instant last_moment = n.valid_until - margin(options_of(n).lease);
        const instant renewal_due = n.pending().renewing == nullptr ? std::max(n.renew_at, now) : never;
        due = std::min({due, last_moment, renewal_due, n.pending().change_again_at, n.pending().raise_again_at});
    }
    due == never ? timers_.cancel(n) : timers_.set(n, due);
}

void node_core::send(call& request) {
    todo().add(effects::send{&out_, &request});
}

void node_core::confirm(call& request, const node_hold& n) {
    todo().add(effects::confirm{&out_, &request, &keys_of(n), options_of(n).acknowledged_by()});
}

void node_core::drop(node_hold& n, call* node_requests::*which) {
    if (!n.requests) return;
    call* const dropped = std::exchange((*n.requests).*which, nullptr);
    if (dropped == nullptr) return;
    dropped->orphan();
    if (dropped->life() == redis::command::state::waiting) todo().add(effects::withdraw{&out_, dropped});
}

bool node_core::drop_ask(node_hold& n) {
    const call* const asking = n.pending().asking;
    const bool written = asking != nullptr && asking->may_run();
    if (written) n.orphaned_ask = true;
    drop(n, &node_requests::asking);
    return written;
}

void node_core::end_acquisition(node_hold& n) {
    if (n.requests && n.asks()) n.requests->acquisition.end();
    if (!n.stray_copies) stop_listening(n);
}

void node_core::mark_stray(node_hold& n) {
    n.stray_copies = true;
    expect_push(n);
}

void node_core::enter_channel(node_hold& n) {
    if (!std::exchange(n.listens, true)) wakes_.enter(keys_of(n));
}

void node_core::listen(node_hold& n) {
    enter_channel(n);
    wakes_.subscribe(keys_of(n));
}

void node_core::expect_push(node_hold& n) {
    enter_channel(n);
    if (!std::exchange(n.expects_push, true)) waiters_.emplace(n.whole->id().counter(), &n);
}

void node_core::stop_listening(node_hold& n) {
    if (std::exchange(n.expects_push, false)) waiters_.erase(n.whole->id().counter());
    if (std::exchange(n.listens, false)) wakes_.leave(keys_of(n));
}

node_hold* node_core::find_waiter(std::string_view id) const {
    const auto number = wire::counter_of(id);
    const auto found = number ? waiters_.find(*number) : waiters_.end();
    return found != waiters_.end() && std::string_view(id_of(*found->second)) == id ? found->second : nullptr;
}

void node_core::adopt(node_hold& n, fencing_token token) {
    where_.clock.saw(token);
    n.token = token;
}

void node_core::lose(node_hold& n, errc why) {
    n.phase = node_phase::lost;
    timers_.cancel(n);
    drop(n, &node_requests::renewing);
    drop_ask(n);
    drop(n, &node_requests::changing);
    drop(n, &node_requests::raising);
    if (n.requests) n.requests->change_again_at = n.requests->raise_again_at = never;
    n.cancelling = false;
    end_acquisition(n);
    rest_if_idle(n);
    tell({.what = node_event::kind::lost, .why = why, .at = &n});
}

void node_core::forget(node_hold& n) {
    drop(n, &node_requests::asking);
    drop(n, &node_requests::renewing);
    drop(n, &node_requests::changing);
    drop(n, &node_requests::leaving);
    drop(n, &node_requests::raising);
    if (n.requests) {
        n.requests->acquisition.end();
        n.requests->raise_again_at = n.requests->release_again_at = n.requests->change_again_at = never;
    }
    rest_if_idle(n);
    timers_.cancel(n);
    stop_listening(n);
    n.phase = node_phase::gone;
    holds_.erase(holds_.iterator_to(n));
}

void node_core::tell_failed(node_event::kind what, node_hold& n, refusal why) {
    tell({.what = what, .at = &n, .why_not = todo().keep(std::move(why))});
}

failure node_core::classify(node_hold& n, const redis::reply_view& error_reply) {
    failure why = redis::classify_error(error_reply.text(), settings_.server);
    if (!spoils_link(why.code)) return why;
    todo().add(effects::distrust{&out_, todo().keep(why)});
    // When the link ends this node hold may be forgotten, and could not be marked then.
    if (n.orphaned_ask) mark_stray(n);
    return why;
}

refusal node_core::nonsense() const {
    return {errc::protocol_error, settings_.server + ": a lock script was answered with something else", {}, {}};
}

}  // namespace holdfast::engine
