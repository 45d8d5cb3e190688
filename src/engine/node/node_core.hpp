// What the parts of a node agent share: the node's settings and way out, its timers, its calls, its wake-up channels.
//
// Order of the parts, each knows only those before it: node_core, confirming, renewing, changing, releasing, acquiring,
// raising, node_agent.
#pragma once

#include "engine/effects.hpp"
#include "engine/node/call.hpp"
#include "engine/node/outbox.hpp"
#include "engine/node/wake_channels.hpp"
#include "engine/quorum/common_clock.hpp"
#include "engine/spares.hpp"
#include "engine/timer_heap.hpp"
#include "wire/kind.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::engine {

struct node_settings {
    milliseconds request_timeout{2000};
    milliseconds fence_retention{3600 * 1000};
    // A hold is told to be lost this part of a lease before its validity ends.
    unsigned lost_margin_percent = 10;
    // By how much another server's clock may be ahead: replicas store absolute expiry times.
    milliseconds clock_skew{0};
    // With this many renewals in flight, others are put off for a while.
    std::size_t most_renewals = 1000;
    std::string server;  // for messages
    channels listens = channels::one;
    std::size_t number = 0;
};

// What the engine gives all its nodes.
struct node_surroundings {
    const client_id& client;
    random_source& random;
    common_clock& clock;
    agenda& todo;
};

// By the counter of their hold id.
using waiter_index = boost::unordered_flat_map<std::uint64_t, node_hold*>;

class node_core {
public:
    node_core(node_settings settings, const node_surroundings& where, outbox& out, node_agent& owner);

    const node_settings& settings() const noexcept { return settings_; }
    random_source& random() const noexcept { return where_.random; }
    common_clock& clock() const noexcept { return where_.clock; }
    // Questions only: what should be done there is an effect.
    const outbox& node() const noexcept { return out_; }
    wake_channels& wakes() noexcept { return wakes_; }
    call_pool& calls() noexcept { return calls_; }
    timer_heap& timers() noexcept { return timers_; }
    node_hold_list& holds() noexcept { return holds_; }

    // --- about a node hold
    static const hold_terms& terms_of(const node_hold& n) noexcept;
    static const lock_options& options_of(const node_hold& n) noexcept { return terms_of(n).options; }
    static const wire::kind& kind_of(const node_hold& n) noexcept { return wire::kind_of(options_of(n).kind); }
    static const lock_keys& keys_of(const node_hold& n) noexcept { return *terms_of(n).keys; }
    hold_id::spelled id_of(const node_hold& n) const noexcept;
    wire::lock_terms lock_of(const node_hold& n, instant now) const;
    bool link_is_up(const node_hold& n) const { return out_.link_is_up(keys_of(n)); }
    bool is_trusted(const node_hold& n, instant now) const { return now >= out_.trusted_from(keys_of(n)); }
    milliseconds drift(milliseconds lease) const noexcept {
        return lease / 100 + milliseconds(2) + settings_.clock_skew;
    }
    milliseconds margin(milliseconds lease) const noexcept { return lease * settings_.lost_margin_percent / 100; }

    // --- steps that several parts take
    node_requests& busy(node_hold& n);
    // Whatever is due first, of a node hold that is wanted or held.
    void set_timer(node_hold& n, instant now);
    void send(call& request);
    void confirm(call& request, const node_hold& n);
    void want_link(const node_hold& n) { todo().add(effects::want_link{&out_, &keys_of(n)}); }
    // Nobody waits for its answer any more.
    void drop(node_hold& n, call* node_requests::*which);
    // The same of an acquiring request. True if it may run all the same.
    bool drop_ask(node_hold& n);
    void end_acquisition(node_hold& n);
    // A copy of an acquiring request may run late: a grant that it gets is pushed to this id, and given back.
    void mark_stray(node_hold& n);
    // Before a request that may put it in the queue.
    void listen(node_hold& n);
    // It is in the queue, or may be: a push may be for it.
    void expect_push(node_hold& n);
    // The token by which the node knows the hold from now on.
    void adopt(node_hold& n, fencing_token token);
    void lose(node_hold& n, errc why);
    void forget(node_hold& n);

    // --- what the quorum hears
    void tell(const node_event& what) { where_.todo.tell(what); }
    void tell(node_event::kind what, node_hold& n) { tell({.what = what, .at = &n}); }
    void tell_failed(node_event::kind what, node_hold& n, refusal why);
    agenda& todo() noexcept { return where_.todo; }

    // --- of answers
    failure classify(node_hold& n, const redis::reply_view& error_reply);
    refusal nonsense() const;

    // The waiter with that id, if a push may be for it.
    node_hold* find_waiter(std::string_view id) const;

private:
    void rest_if_idle(node_hold& n) noexcept;
    void enter_channel(node_hold& n);
    void stop_listening(node_hold& n);

    node_settings settings_;
    node_surroundings where_;
    outbox& out_;
    wake_channels wakes_;
    call_pool calls_;
    timer_heap timers_;
    spares<node_requests> spare_requests_;
    node_hold_list holds_;  // those that are not gone, in the order they came
    waiter_index waiters_;  // those to which a grant may be pushed
};

}  // namespace holdfast::engine
