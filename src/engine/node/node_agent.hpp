// The logic that talks to one node: what is asked of it, when its answers are believed, and when it is asked again.
//
// Sans-I/O. It knows node holds, and nothing of majorities, owners or callers: what becomes of a node hold is told to
// the quorum as a node event, what should be sent is an effect. This class hands every event to the step it is for, and
// has what the steps share: the node's settings and way out, its timers, its calls, its wake-up channels. The steps are
// functions, see parts.hpp.
//
// Invariants beside those of the steps:
//  (1) Renewal is on before a grant is told and off before the release is sent.
//  (2) A holder believes in less before the server is asked to make it less, and in more only after the server said so.
#pragma once

#include "base/errc_table.hpp"
#include "engine/common_clock.hpp"
#include "engine/hold.hpp"
#include "engine/node/bundle.hpp"
#include "engine/node/lock_watch.hpp"
#include "engine/node/wake_channels.hpp"
#include "engine/spares.hpp"
#include "wire/kind.hpp"
#include "wire/push.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

namespace holdfast::engine {

// When to ask again after a refusal that may pass (see may_pass()).
constexpr milliseconds again_after{100};

// A node: how to reach it, and its name for messages.
struct node_link {
    outbox* out = nullptr;
    std::string server;
    channels listens = channels::one;
};

// What the engine gives all its nodes.
struct node_surroundings {
    const engine_settings& settings;
    const client_id& client;
    random_source& random;
    common_clock& clock;
    agenda& todo;
};

// How a call ended: by a reply, or by the reason why there is none.
struct call_outcome {
    const redis::reply_view* reply = nullptr;
    const failure* why = nullptr;
};

struct confirmation;

class node_agent {
public:
    node_agent(node_link link, const node_surroundings& where);
    ~node_agent() { holds_.clear(); }
    node_agent(const node_agent&) = delete;
    node_agent& operator=(const node_agent&) = delete;

    // --- what the quorum asks for, beside the steps
    // Answered by a node event `changed`, if that is less than the node has.
    void make_less(node_hold& n, shape at_most, instant now);
    // The node hold is renewed no longer, and not given back either: its lease ends it, when the holder had time to
    // stop.
    void let_run_out(node_hold& n, instant now);
    // Nothing is sent any more, and it is gone.
    void abandon(node_hold& n) {
        if (!n.is_gone()) forget(n);
    }
    // Listens on the wake-up channel of that lock for as long as this client lives, whether anybody waits or not: a
    // holder that never waited hears a recall, too.
    void keep_listening(const lock_keys& lock);
    // Until it is stopped.
    lock_watch& watch(std::shared_ptr<const lock_keys> keys, std::shared_ptr<watch_listener> listener, telling what,
                      instant now);
    // What is asked for from now until then goes out as one call, where that can be.
    void begin_together() noexcept { collects_ = true; }
    void end_together();
    void want_link(const node_hold& n) { todo().add(effects::want_link{&out_, &keys_of(n)}); }

    // --- events
    void on_link_up(const lock_set& which, instant now);
    void on_link_down(const lock_set& which);
    // Nobody can be woken: every waiter is refused for that reason.
    void on_subscription_refused(const failure& why, const lock_set& which, instant now);
    void on_wakes_changed(const lock_set& which, instant now);
    void on_push(const redis::reply_view& message, instant now);
    void on_timer(instant now);
    void on_outcome(call& asked, const call_outcome& outcome, instant now);

    // --- questions
    instant deadline() const noexcept { return std::min(timers_.earliest(), watch_timers_.earliest()); }
    bool link_is_up(const node_hold& n) const { return out_.link_is_up(keys_of(n)); }
    bool is_trusted(const node_hold& n, instant now) const { return now >= out_.trusted_from(keys_of(n)); }
    // How long it is until that node votes about the lock; zero if it does.
    milliseconds recovers_in(const lock_keys& lock, instant now) const;
    // Of any lock, at any time.
    bool was_reached() const noexcept { return was_reached_; }
    const std::string& server() const noexcept { return link_.server; }
    channels listens() const noexcept { return link_.listens; }

    const engine_settings& settings() const noexcept { return where_.settings; }
    random_source& random() const noexcept { return where_.random; }
    common_clock& clock() const noexcept { return where_.clock; }
    // Questions only: what should be done there is an effect.
    const outbox& node() const noexcept { return out_; }
    wake_channels& wakes() noexcept { return wakes_; }
    woken_by wakes(const node_hold& n) { return out_.wakes(wakes_.of(keys_of(n))); }
    std::size_t renewals_in_flight() const noexcept { return renewals_; }
    timer_heap& timers() noexcept { return timers_; }
    timer_heap& watch_timers() noexcept { return watch_timers_; }
    const client_id& client() const noexcept { return where_.client; }
    node_hold_list& holds() noexcept { return holds_; }

    // --- about a node hold
    static const hold_terms& terms_of(const node_hold& n) noexcept { return n.whole->terms(); }
    static const lock_options& options_of(const node_hold& n) noexcept { return terms_of(n).options; }
    static const wire::kind& kind_of(const node_hold& n) noexcept { return wire::kind_of(options_of(n).kind); }
    static const lock_keys& keys_of(const node_hold& n) noexcept { return *terms_of(n).keys; }
    hold_id::spelled id_of(const node_hold& n) const noexcept { return n.whole->id().spell(where_.client, n.mark); }
    wire::lock_terms lock_of(const node_hold& n, instant now) const;
    milliseconds drift(milliseconds lease) const noexcept {
        return lease / 100 + milliseconds(2) + where_.settings.clock_skew;
    }
    milliseconds margin(milliseconds lease) const noexcept { return lease * where_.settings.lost_margin_percent / 100; }

    // --- steps that several parts take
    node_requests& busy(node_hold& n);
    // Whatever is due first, of a node hold that is wanted or held.
    void set_timer(node_hold& n, instant now);
    // A call that the node hold lists from now on.
    call& start(call::purpose what, node_hold& n, call* node_requests::*slot);
    void send(call& request, instant give_up_at);
    // Nothing of it is in flight.
    void end(call& ended);
    void end(bundle& ended) { idle_bundles_.push_back(&ended); }
    // Of a bundle: its parts in one call.
    void write_together(bundle& out, const std::vector<call*>& parts);
    // A part that the bundle's script has left alone.
    void send_alone(call& part, instant now);
    void confirm(call& request, const node_hold& n) {
        todo().add(effects::confirm{&out_, &request, &keys_of(n), options_of(n).acknowledged_by()});
    }
    // Nobody waits for its answer any more.
    void drop(node_hold& n, call* node_requests::*which);
    // The same of an acquiring request. True if it may run all the same.
    bool drop_ask(node_hold& n);
    // And of all others but a release.
    void drop_all(node_hold& n);
    void end_acquisition(node_hold& n);
    // A copy of an acquiring request may run late: a grant that it gets is pushed to this id, and given back.
    void mark_stray(node_hold& n) {
        n.stray_copies = true;
        expect_push(n);
    }
    // Before a request that may put it in the queue.
    void listen(node_hold& n);
    // It is in the queue, or may be: a push may be for it.
    void expect_push(node_hold& n);
    // The token by which the node knows the hold from now on.
    void adopt(node_hold& n, fencing_token token) {
        where_.clock.saw(token);
        n.token = token;
    }
    void lose(node_hold& n, errc why);
    void forget(node_hold& n);

    // --- what the quorum hears
    void tell(const node_event& what) { where_.todo.tell(what); }
    void tell(node_event::kind what, node_hold& n) { tell({.what = what, .at = &n}); }
    void tell_failed(node_event::kind what, node_hold& n, refusal why) {
        tell({.what = what, .at = &n, .why_not = todo().keep(std::move(why))});
    }
    agenda& todo() noexcept { return where_.todo; }

    // --- of watches
    void ask_watched(lock_watch& which) { todo().add(effects::ask_watched{&out_, &which}); }
    // It is over, and exists until the loop of effects has ended.
    void forget_watch(lock_watch& which);

    // --- of answers
    failure classify(node_hold& n, const redis::reply_view& error_reply);
    refusal nonsense() const;

    // The waiter with that id, if a push may be for it.
    node_hold* find_waiter(std::string_view id) const;

private:
    struct pushed_grant {
        std::string_view channel;
        std::string_view id;
        fencing_token token = 0;
    };

    void dispatch(node_hold& n, const call& asked, const call_outcome& outcome, instant now);
    void dispatch_held(node_hold& n, const call& asked, const call_outcome& outcome, instant now);
    void confirmed(node_hold& n, const call& asked, const confirmation& said, instant now);
    void on_renewal(node_hold& n, const call& asked, const redis::reply_view& reply, instant now);
    void check_holding(node_hold& n, instant now);
    void revoked(const pushed_grant& which, instant now);
    void recalled(const pushed_grant& which);
    void to_waiter(node_hold& n, wire::push_kind kind, const wire::push_reader::item& item, instant now);
    bool is_meant(const node_hold& n, const pushed_grant& which);
    void rest_if_idle(node_hold& n) noexcept;
    bool goes_together(const call& request) const;
    void send_together(std::vector<call*> parts);
    void enter_channel(node_hold& n);
    void stop_listening(node_hold& n);

    const node_link link_;
    const node_surroundings where_;
    outbox& out_;
    wake_channels wakes_;
    timer_heap timers_;
    timer_heap watch_timers_;
    std::vector<std::shared_ptr<lock_watch>> watches_;
    spares<node_requests> spare_requests_;
    node_hold_list holds_;  // those that are not gone, in the order they came
    // Those to which a grant may be pushed, by the counter of their hold id.
    boost::unordered_flat_map<std::uint64_t, node_hold*> waiters_;
    std::vector<std::unique_ptr<call>> calls_;
    std::vector<call*> idle_calls_;
    std::vector<std::unique_ptr<bundle>> bundles_;
    std::vector<bundle*> idle_bundles_;
    std::vector<call*> collected_;
    bool collects_ = false;
    std::size_t renewals_ = 0;
    bool was_reached_ = false;
};

}  // namespace holdfast::engine
