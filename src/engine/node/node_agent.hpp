// The logic that talks to one node: what is asked of it, when its answers are believed, and when it is asked again.
//
// Sans-I/O. It knows node holds, and nothing of majorities, owners or callers: what becomes of a node hold is told to
// the quorum as a node event, what should be sent is an effect. Its work is split into parts, see node_core.hpp; this
// class hands every event to the part it is for.
//
// Invariants beside those of the parts:
//  (1) Renewal is on before a grant is told and off before the release is sent.
//  (2) A holder believes in less before the server is asked to make it less, and in more only after the server said so.
#pragma once

#include "engine/node/acquiring.hpp"
#include "engine/node/raising.hpp"

#include <string>
#include <string_view>

namespace holdfast::engine {

class node_agent {
public:
    node_agent(node_settings settings, const node_surroundings& where, outbox& out);
    ~node_agent();
    node_agent(const node_agent&) = delete;
    node_agent& operator=(const node_agent&) = delete;

    // --- what the quorum asks for
    void ask(node_hold& n, patience limit, instant now) { acquires_.ask(n, limit, now); }
    // See acquiring.
    void upgrade(node_hold& n, patience limit, instant now) { acquires_.upgrade(n, limit, now); }
    void yield(node_hold& n, instant now) { acquires_.yield(n, now); }
    void give_up(node_hold& n, instant now) { acquires_.give_up(n, now); }
    // Polls, so that the node hears of the hold's ticket.
    void ask_again(node_hold& n, instant now) { acquires_.poll(n, now); }
    // Answered by a node event `released`, or at last `gone`.
    void release(node_hold& n, instant now) { releases_.release(n, now); }
    // Answered by `renewed`.
    void renew(node_hold& n, instant now) { renews_.renew(n, now); }
    // Answered by `changed`, if that is less than the node has.
    void make_less(node_hold& n, shape at_most, instant now);
    // Answered by `raised`, `lost` or `refused`.
    void raise(node_hold& n, fencing_token to, instant now) { raises_.raise(n, to, now); }
    // The node hold is renewed no longer, and not given back either: its lease ends it, when the holder had time to
    // stop.
    void let_run_out(node_hold& n, instant now);
    // Nothing is sent any more, and it is gone.
    void abandon(node_hold& n);
    // Listens on the wake-up channel of that lock for as long as this client lives, whether anybody waits or not: a
    // holder that never waited hears a recall, too.
    void keep_listening(const lock_keys& lock);
    void want_link(const node_hold& n);

    // --- events
    void on_link_up(const lock_set& which, instant now);
    void on_link_down(const lock_set& which);
    // Nobody can be woken: every waiter is refused for that reason.
    void on_subscription_refused(const failure& why, const lock_set& which, instant now);
    void on_push(const redis::reply_view& message, instant now);
    void on_timer(instant now);
    void on_reply(call& asked, const redis::reply_view& reply, instant now);
    void on_failure(call& asked, const failure& why, instant now);
    void end(call& ended) { core_.calls().end(ended); }
    instant deadline() const noexcept { return timers_.earliest(); }

    // --- questions
    bool link_is_up(const node_hold& n) const { return core_.link_is_up(n); }
    bool link_is_up(const lock_keys& lock) const { return core_.node().link_is_up(lock); }
    failure why_not_up(const node_hold& n) const { return core_.node().why_not_up(core_.keys_of(n)); }
    bool is_trusted(const node_hold& n, instant now) const { return core_.is_trusted(n, now); }
    // How long it is until that node votes about the lock; zero if it does.
    milliseconds recovers_in(const lock_keys& lock, instant now) const;
    // Of any lock, at any time.
    bool was_reached() const noexcept { return was_reached_; }
    const std::string& server() const noexcept { return core_.settings().server; }

private:
    struct pushed_grant {
        std::string_view channel;
        std::string_view id;
        fencing_token token = 0;
    };

    void dispatch(node_hold& n, const call& asked, const redis::reply_view& reply, instant now);
    void dispatch(node_hold& n, const call& asked, const failure& why, instant now);
    void confirmed(node_hold& n, const call& asked, const confirmation& said, instant now);
    void on_renewal(node_hold& n, const call& asked, const redis::reply_view& reply, instant now);
    void check_holding(node_hold& n, instant now);
    void revoked(const pushed_grant& which, instant now);
    void recalled(const pushed_grant& which);
    bool is_meant(const node_hold& n, const pushed_grant& which);

    node_core core_;
    confirming confirms_;
    renewing renews_;
    changing changes_;
    releasing releases_;
    acquiring acquires_;
    raising raises_;
    agenda& todo_;
    timer_heap& timers_;
    bool was_reached_ = false;
};

}  // namespace holdfast::engine
