// What is asked of one node, when its answers are believed, and when it is asked again.
//
// Sans-I/O, like the engine whose part it is: events come in, each with `now`; calls go out through the outbox. It
// knows node_holds, and nothing of majorities, owners or callers: whatever happens to a node_hold is told to the
// counter.
//
// Invariants:
//  (1) Validity is counted from before the request that proved the hold was written, never from its answer, less a
//      drift of lease/100 + 2 ms and the clocks' skew. A pushed grant is proved by the last poll that was answered
//      "still in line": its lease began after that.
//  (2) An id that nobody asks for any more is undone: the undo is sent after the last copy of what it undoes.
//  (3) Renewal is on before granted() is called and off before the release is sent; it never revives.
//  (4) Whatever was written on a link that broke is repeated on the next one, or undone there.
//  (5) A holder believes in less before the server is asked to make it less, and in more only after the server said so.
#pragma once

#include "engine/call.hpp"
#include "engine/node_hold.hpp"
#include "engine/outbox.hpp"
#include "engine/spares.hpp"
#include "engine/timer_heap.hpp"
#include "engine/wake_channels.hpp"
#include "wire/hold_id.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::engine {

// Told what becomes of node_holds. Whatever tells is the last thing that the node_agent does with that node_hold for
// now: it may not exist any more afterwards.
class counter {
public:
    virtual void granted(node_hold& b, how got, instant now) = 0;
    virtual void queued(node_hold& b, instant now) = 0;
    // The acquisition is over; what was held before is held still.
    virtual void refused(node_hold& b, const refusal& why, instant now) = 0;
    virtual void extended(node_hold& b, instant now) = 0;
    virtual void lost(node_hold& b, errc why, instant now) = 0;
    // An operator wants the lock back. The node still has the hold.
    virtual void recalled(node_hold& b, instant now) = 0;
    virtual void renewed(node_hold& b, const node_answer& answer, instant now) = 0;
    virtual void renewal_failed(const failure& why) = 0;
    virtual void changed(node_hold& b, const node_answer& answer, instant now) = 0;
    virtual void released(node_hold& b, const node_answer& answer, instant now) = 0;
    // Nothing of it is left at the node, and nobody was told so otherwise.
    virtual void gone(node_hold& b) = 0;
    // Its token is now the one that was wished for.
    virtual void raised(node_hold& b, instant now) = 0;
    virtual void links_changed(const lock_set& which, instant now) = 0;
    // Of whatever lock. Nothing is to be sent now.
    virtual void owners_changed() = 0;
    // Somebody waits for what the node_hold is asked for; otherwise it would be one vote more.
    virtual bool is_asked_for(const node_hold& b) const = 0;
    // A node has told what its clock shows.
    virtual void clock_told(instant now) = 0;
    // What the next token had best be; 0: let the node say.
    virtual fencing_token proposal(instant now) const = 0;
    // The highest token seen so far, and one more seen.
    virtual fencing_token floor() const = 0;
    virtual void saw(fencing_token token) = 0;

protected:
    ~counter() = default;
};

struct node_agent_settings {
    milliseconds request_timeout{2000};
    milliseconds fence_retention{3600 * 1000};
    // lost() fires this part of a lease before validity ends.
    unsigned lost_margin_percent = 10;
    // By so much another server's clock may be ahead: replicas have expiries as times of day.
    milliseconds clock_skew{0};
    // With so many renewals under way, others give way for a while.
    std::size_t most_renewals = 1000;
    std::string server;  // for messages
    channels listens = channels::one;
};

// What a node tells when the link to it comes up.
struct node_facts {
    std::optional<std::chrono::microseconds> clock = {};  // since 1970
};

class node_agent {
public:
    node_agent(node_agent_settings settings, const client_id& client, outbox& out, random_source& random,
               counter& told);
    ~node_agent();
    node_agent(const node_agent&) = delete;
    node_agent& operator=(const node_agent&) = delete;

    // --- requests
    void ask(node_hold& b, patience limit, instant now);
    // Has a node_hold that reads write as well; it goes on reading, whatever comes of it.
    void upgrade(node_hold& b, patience limit, instant now);
    // Ends a acquisition that is under way, giving back what it may have got. Not told: the caller knows.
    void give_up(node_hold& b, instant now);
    // Ends all of it, if there is any; answered by released(), then gone().
    void release(node_hold& b, instant now);
    // Makes the lease full again now; answered by renewed().
    void renew(node_hold& b, instant now);
    // From now on the node should have this of it at most; answered by changed() if that is less.
    void make_less(node_hold& b, shape at_most, instant now);
    // Gives a vote up for whoever is first in line, and keeps the place there; it counts no more from now on.
    void yield(node_hold& b, instant now);
    // Polls, so that the node hears of the hold's ticket.
    void ask_again(node_hold& b, instant now) { poll(b, now); }
    // Has the node know a vote by a greater token; answered by raised(), lost() or refused().
    void raise(node_hold& b, fencing_token to, instant now);
    // A vote is kept no longer, and not given back either: its lease ends it, when the holder has had its time to stop.
    void let_run_out(node_hold& b, instant now);
    // Nothing is sent any more; it is gone when this returns.
    void abandon(node_hold& b);
    // Listens on the wake-up channel of that lock for as long as this client lives, whether anybody waits or not: a
    // holder that never waited hears a recall, too.
    void keep_listening(const lock_keys& lock);

    // --- events
    void on_link_up(const node_facts& facts, const lock_set& which, instant now);
    void on_link_down(const lock_set& which, instant now);
    // Locks may have other owners now: some to whom nothing was ever sent.
    void on_owners_changed() { told_.owners_changed(); }
    // Nobody can be woken: whoever waits in line is refused for that reason.
    void on_subscription_refused(const failure& why, const lock_set& which, instant now);
    void on_push(const redis::reply_view& message, instant now);
    void on_timer(instant now);
    instant deadline() const noexcept { return timers_.earliest(); }

    // Of the one whom that node_hold is asked of.
    bool link_is_up(const node_hold& b) const { return link_is_up(keys_of(b)); }
    bool link_is_up(const lock_keys& lock) const { return out_.link_is_up(lock); }
    failure why_not_up(const node_hold& b) const { return out_.why_not_up(keys_of(b)); }
    // Of any lock, at any time.
    bool was_reached() const noexcept { return was_reached_; }
    void want_link(const node_hold& b) { out_.want_link(keys_of(b)); }
    bool is_trusted(const node_hold& b, instant now) const { return now >= out_.trusted_from(keys_of(b)); }
    // How long it is until that node votes about the lock; zero if it does.
    milliseconds recovers_in(const lock_keys& lock, instant now) const;
    // What the node's clock showed when ours began, as far as known; a little less rather than more.
    std::optional<std::chrono::microseconds> clock_at_boot() const noexcept { return clock_at_boot_; }
    const std::string& server() const noexcept { return settings_.server; }

private:
    friend class call;
    using state = node_hold::state;
    using stage = node_hold::stage;
    using purpose = call::purpose;
    using in_flight = node_hold::requests_in_flight;

    // asking and waiting (voting.cpp)
    void begin_acquisition(node_hold& b, patience limit, instant now, fencing_token gives_way = 0);
    static bool is_being_changed(const node_hold& b) noexcept;
    void start_deferred(node_hold& b, instant now);
    void send_ask(node_hold& b, instant now);
    void poll(node_hold& b, instant now);
    void answered_acquire(node_hold& b, const call& asked, const redis::reply_view& reply, instant now);
    void stand_in_line(node_hold& b, const call& asked, const wire::acquire_answer& answer, instant now);
    void failed_acquire(node_hold& b, const failure& why, instant now);
    void granted(node_hold& b, const proof& shown, instant now);
    void believe(node_hold& b, const proof& shown, instant now);
    void ask_after_late_grant(node_hold& b, instant now);
    void upgraded(node_hold& b, const proof& shown, instant now);
    void end_acquisition(node_hold& b);
    static bool is_written(const call* asked) noexcept;
    bool drop_ask(node_hold& b);
    void refuse(node_hold& b, refusal why, instant now);
    void refuse_or_stay(node_hold& b, refusal why, instant now);
    static errc too_late(const node_hold& b) noexcept;
    refusal recovering(const node_hold& b, instant now) const;
    void check_waiting(node_hold& b, instant now);
    void believe_push(node_hold& b, fencing_token token, instant now);
    void mark_stray(node_hold& b);
    void learn_clock(std::chrono::microseconds shown, instant asked, instant answered);
    void heed_acquire(node_hold& b, const call& asked, const wire::acquire_answer& answer, instant now);
    struct pushed_grant {
        std::string_view channel;
        std::string_view id;
        fencing_token token = 0;
    };
    void revoked(const pushed_grant& which, instant now);
    void recalled(const pushed_grant& which, instant now);
    static bool is_token_of(const node_hold& b, fencing_token token) noexcept {
        return token == 0 || b.token_ == token;
    }
    bool is_meant(const node_hold& b, const pushed_grant& which);
    // A grant may be pushed to it; and, for one that is asked for, is to be heard.
    void expect_push(node_hold& b);
    void listen(node_hold& b);
    void stop_listening(node_hold& b);

    // what replicas must have first (vote_confirm.cpp)
    bool wants_replicas(const node_hold& b) const noexcept;
    refusal too_few_replicas() const;
    void confirm(node_hold& b, call* in_flight::*slot, purpose what, const proof& shown);
    void confirm_grant(node_hold& b, const proof& shown, instant now);
    void confirm_renewal(node_hold& b, const proof& shown, instant now);
    void renewal_confirmed(node_hold& b, const proof& shown, instant now);
    void answered_confirm(node_hold& b, const call& asked, const redis::reply_view& reply, instant now);
    void not_confirmed(node_hold& b, const call& asked, const failure& why, instant now);
    void grant_not_known(node_hold& b, const failure& why, instant now);
    static bool is_confirming(const node_hold& b, fencing_token token) noexcept;
    void ask_instead(node_hold& b, instant now);

    // holding (vote_renewal.cpp)
    std::chrono::nanoseconds renewal_pace(const node_hold& b) const;
    static void note_foreign_ttl(node_hold& b, std::optional<milliseconds> cut_to);
    void extend_validity(node_hold& b, instant proved_at);
    void send_renewal(node_hold& b, instant now, purpose how_asked = purpose::renew);
    void answered_renew(node_hold& b, const call& asked, const redis::reply_view& reply, instant now);
    void found_held(node_hold& b, const call& asked, const wire::hold_answer& answer, instant now);
    void tell_renewed(node_hold& b, instant now);
    void failed_renew(node_hold& b, const failure& why, instant now);
    void check_holding(node_hold& b, instant now);
    void renew_when_due(node_hold& b, instant now);
    void lose(node_hold& b, errc why, instant now);
    // By our own clock; the timer that tells so may be late.
    static bool ran_out(const node_hold& b, instant now) noexcept { return now >= b.valid_until_; }
    void notice(node_hold& b, const wire::hold_answer& held, instant now);

    // holding less (vote_change.cpp)
    void begin_change(node_hold& b, instant now);
    void cancel_upgrade(node_hold& b, instant now);
    void send_change(node_hold& b, instant now);
    void answered_change(node_hold& b, const call& asked, const redis::reply_view& reply, instant now);
    void answered_cancel(node_hold& b, const redis::reply_view& reply, instant now);
    void failed_change(node_hold& b, const failure& why, instant now);
    void end_change(node_hold& b, node_answer answer, instant now);
    void check_change(node_hold& b, instant now);
    void adopt(node_hold& b, fencing_token token);

    // leaving (vote_release.cpp)
    void leave(node_hold& b, instant now);
    void send_release(node_hold& b, instant now);
    void answered_release(node_hold& b, const redis::reply_view& reply, instant now);
    void failed_release(node_hold& b, const failure& why, instant now);
    bool can_go_alone(const node_hold& b) const noexcept;
    void release_alone(node_hold& b, instant now);
    void answered_release_alone(node_hold& b, const redis::reply_view& reply, instant now);
    void failed_release_alone(node_hold& b, const failure& why, instant now);
    void check_leaving(node_hold& b, instant now);
    void give_back(node_hold& b, fencing_token token, instant now);
    void forget(node_hold& b);

    // one token for all (vote_raise.cpp)
    void answered_raise(node_hold& b, const redis::reply_view& reply, instant now);
    void raised(node_hold& b, instant now);
    void raise_later(node_hold& b, instant now);
    void failed_raise(node_hold& b, const failure& why, instant now);
    void send_raise(node_hold& b, instant now);

    // shared
    void set_timer(node_hold& b, instant now);
    wire::lock_terms lock_of(const node_hold& b, instant now) const;
    hold_id::spelled id_of(const node_hold& b) const noexcept;
    std::uint64_t number_of(const node_hold& b) const noexcept;
    node_hold* find_waiter(std::string_view id) const;
    const hold_terms& terms_of(const node_hold& b) const noexcept;
    const lock_keys& keys_of(const node_hold& b) const noexcept { return *terms_of(b).keys; }
    in_flight& busy(node_hold& b);
    void rest_if_idle(node_hold& b) noexcept;
    call& start_call(purpose what, node_hold& b);
    void finish_call(call& finished);
    void drop_call(node_hold& b, call* in_flight::*which);
    failure classify(const redis::reply_view& error_reply);
    refusal nonsense() const;
    milliseconds drift(milliseconds lease) const noexcept {
        return lease / 100 + milliseconds(2) + settings_.clock_skew;
    }
    milliseconds margin(milliseconds lease) const noexcept { return lease * settings_.lost_margin_percent / 100; }

    node_agent_settings settings_;
    const client_id& client_;
    outbox& out_;
    random_source& random_;
    counter& told_;
    std::optional<std::chrono::microseconds> clock_at_boot_;
    wake_channels wakes_;
    timer_heap timers_;
    node_hold_list node_holds_;  // those that are not gone, in the order they came
    // By the counter of their hold id: those to whom a grant may be pushed. Every acquisition has a place here, if for
    // a moment.
    boost::unordered_flat_map<std::uint64_t, node_hold*> waiters_;
    std::vector<std::unique_ptr<call>> calls_;  // every one ever made; those not under way are in idle_calls_
    std::vector<call*> idle_calls_;
    std::size_t renewals_under_way_ = 0;
    bool was_reached_ = false;
    spares<in_flight> spare_in_flight_;
};

}  // namespace holdfast::engine
