// What is asked of one node, when its answers are believed, and when it is asked again.
//
// Sans-I/O, like the engine whose part it is: events come in, each with `now`; calls go out through the outbox. It
// knows ballots, and nothing of majorities, owners or callers: whatever happens to a ballot is told to the counter.
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

#include "engine/ballot.hpp"
#include "engine/call.hpp"
#include "engine/hold_id.hpp"
#include "engine/outbox.hpp"
#include "engine/spares.hpp"
#include "engine/timer_heap.hpp"
#include "engine/wake_channels.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::engine {

// Told what becomes of ballots. Whatever tells is the last thing that the voter does with that ballot for now: it may
// not exist any more afterwards.
class counter {
public:
    virtual void granted(ballot& b, how got, instant now) = 0;
    virtual void queued(ballot& b, instant now) = 0;
    // The quest is over; what was held before is held still.
    virtual void refused(ballot& b, const refusal& why, instant now) = 0;
    virtual void extended(ballot& b, instant now) = 0;
    virtual void lost(ballot& b, errc why, instant now) = 0;
    // An operator wants the lock back. The node still has the hold.
    virtual void recalled(ballot& b, instant now) = 0;
    virtual void renewed(ballot& b, const node_answer& answer, instant now) = 0;
    virtual void renewal_failed(const failure& why) = 0;
    virtual void changed(ballot& b, const node_answer& answer, instant now) = 0;
    virtual void released(ballot& b, const node_answer& answer, instant now) = 0;
    // Nothing of it is left at the node, and nobody was told so otherwise.
    virtual void gone(ballot& b) = 0;
    // Its token is now the one that was wished for.
    virtual void raised(ballot& b, instant now) = 0;
    virtual void links_changed(const lock_set& which, instant now) = 0;
    // Of whatever lock. Nothing is to be sent now.
    virtual void owners_changed() = 0;
    // Somebody waits for what the ballot is asked for; otherwise it would be one vote more.
    virtual bool is_asked_for(const ballot& b) const = 0;
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

struct voter_settings {
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

class voter {
public:
    voter(voter_settings settings, const client_id& client, outbox& out, random_source& random, counter& told);
    ~voter();
    voter(const voter&) = delete;
    voter& operator=(const voter&) = delete;

    // --- requests
    void ask(ballot& b, patience limit, instant now);
    // Has a ballot that reads write as well; it goes on reading, whatever comes of it.
    void upgrade(ballot& b, patience limit, instant now);
    // Ends a quest that is under way, giving back what it may have got. Not told: the caller knows.
    void give_up(ballot& b, instant now);
    // Ends all of it, if there is any; answered by released(), then gone().
    void release(ballot& b, instant now);
    // Makes the lease full again now; answered by renewed().
    void renew(ballot& b, instant now);
    // From now on the node should have this of it at most; answered by changed() if that is less.
    void make_less(ballot& b, shape at_most, instant now);
    // Gives a vote up for whoever is first in line, and keeps the place there; it counts no more from now on.
    void yield(ballot& b, instant now);
    // Polls, so that the node hears of the hold's ticket.
    void ask_again(ballot& b, instant now) { poll(b, now); }
    // Has the node know a vote by a greater token; answered by raised(), lost() or refused().
    void raise(ballot& b, fencing_token to, instant now);
    // A vote is kept no longer, and not given back either: its lease ends it, when the holder has had its time to stop.
    void let_run_out(ballot& b, instant now);
    // Nothing is sent any more; it is gone when this returns.
    void abandon(ballot& b);
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

    // Of the one whom that ballot is asked of.
    bool link_is_up(const ballot& b) const { return link_is_up(keys_of(b)); }
    bool link_is_up(const lock_keys& lock) const { return out_.link_is_up(lock); }
    failure why_not_up(const ballot& b) const { return out_.why_not_up(keys_of(b)); }
    // Of any lock, at any time.
    bool was_reached() const noexcept { return was_reached_; }
    void want_link(const ballot& b) { out_.want_link(keys_of(b)); }
    bool is_trusted(const ballot& b, instant now) const { return now >= out_.trusted_from(keys_of(b)); }
    // How long it is until that node votes about the lock; zero if it does.
    milliseconds recovers_in(const lock_keys& lock, instant now) const;
    // What the node's clock showed when ours began, as far as known; a little less rather than more.
    std::optional<std::chrono::microseconds> clock_at_boot() const noexcept { return clock_at_boot_; }
    const std::string& server() const noexcept { return settings_.server; }

private:
    friend class call;
    using state = ballot::state;
    using stage = ballot::stage;
    using purpose = call::purpose;
    using errands = ballot::errands_state;

    // asking and waiting (voting.cpp)
    void begin_quest(ballot& b, patience limit, instant now, fencing_token gives_way = 0);
    static bool is_being_changed(const ballot& b) noexcept;
    void start_deferred(ballot& b, instant now);
    void send_ask(ballot& b, instant now);
    void poll(ballot& b, instant now);
    void answered_acquire(ballot& b, const call& asked, const redis::reply_view& reply, instant now);
    void stand_in_line(ballot& b, const call& asked, const scripts::acquire_answer& answer, instant now);
    void failed_acquire(ballot& b, const failure& why, instant now);
    void granted(ballot& b, const proof& shown, instant now);
    void believe(ballot& b, const proof& shown, instant now);
    void ask_after_late_grant(ballot& b, instant now);
    void upgraded(ballot& b, const proof& shown, instant now);
    void end_quest(ballot& b);
    static bool is_written(const call* asked) noexcept;
    bool drop_ask(ballot& b);
    void refuse(ballot& b, refusal why, instant now);
    void refuse_or_stay(ballot& b, refusal why, instant now);
    static errc too_late(const ballot& b) noexcept;
    refusal recovering(const ballot& b, instant now) const;
    void check_waiting(ballot& b, instant now);
    void believe_push(ballot& b, fencing_token token, instant now);
    void mark_stray(ballot& b);
    void learn_clock(std::chrono::microseconds shown, instant asked, instant answered);
    void heed_acquire(ballot& b, const call& asked, const scripts::acquire_answer& answer, instant now);
    struct pushed_grant {
        std::string_view channel;
        std::string_view id;
        fencing_token token = 0;
    };
    void revoked(const pushed_grant& which, instant now);
    void recalled(const pushed_grant& which, instant now);
    static bool is_token_of(const ballot& b, fencing_token token) noexcept { return token == 0 || b.token_ == token; }
    bool is_meant(const ballot& b, const pushed_grant& which);
    // A grant may be pushed to it; and, for one that is asked for, is to be heard.
    void expect_push(ballot& b);
    void listen(ballot& b);
    void stop_listening(ballot& b);

    // what replicas must have first (vote_confirm.cpp)
    bool wants_replicas(const ballot& b) const noexcept;
    refusal too_few_replicas() const;
    void confirm(ballot& b, call* errands::*slot, purpose what, const proof& shown);
    void confirm_grant(ballot& b, const proof& shown, instant now);
    void confirm_renewal(ballot& b, const proof& shown, instant now);
    void renewal_confirmed(ballot& b, const proof& shown, instant now);
    void answered_confirm(ballot& b, const call& asked, const redis::reply_view& reply, instant now);
    void not_confirmed(ballot& b, const call& asked, const failure& why, instant now);
    void grant_not_known(ballot& b, const failure& why, instant now);
    static bool is_confirming(const ballot& b, fencing_token token) noexcept;
    void ask_instead(ballot& b, instant now);

    // holding (vote_renewal.cpp)
    std::chrono::nanoseconds renewal_pace(const ballot& b) const;
    static void note_foreign_ttl(ballot& b, std::optional<milliseconds> cut_to);
    void extend_validity(ballot& b, instant proved_at);
    void send_renewal(ballot& b, instant now, purpose how_asked = purpose::renew);
    void answered_renew(ballot& b, const call& asked, const redis::reply_view& reply, instant now);
    void found_held(ballot& b, const call& asked, const scripts::hold_answer& answer, instant now);
    void tell_renewed(ballot& b, instant now);
    void failed_renew(ballot& b, const failure& why, instant now);
    void check_holding(ballot& b, instant now);
    void renew_when_due(ballot& b, instant now);
    void lose(ballot& b, errc why, instant now);
    // By our own clock; the timer that tells so may be late.
    static bool ran_out(const ballot& b, instant now) noexcept { return now >= b.valid_until_; }
    void notice(ballot& b, const scripts::hold_answer& held, instant now);

    // holding less (vote_change.cpp)
    void begin_change(ballot& b, instant now);
    void cancel_upgrade(ballot& b, instant now);
    void send_change(ballot& b, instant now);
    void answered_change(ballot& b, const call& asked, const redis::reply_view& reply, instant now);
    void answered_cancel(ballot& b, const redis::reply_view& reply, instant now);
    void failed_change(ballot& b, const failure& why, instant now);
    void end_change(ballot& b, node_answer answer, instant now);
    void check_change(ballot& b, instant now);
    void adopt(ballot& b, fencing_token token);

    // leaving (vote_release.cpp)
    void leave(ballot& b, instant now);
    void send_release(ballot& b, instant now);
    void answered_release(ballot& b, const redis::reply_view& reply, instant now);
    void failed_release(ballot& b, const failure& why, instant now);
    bool can_go_alone(const ballot& b) const noexcept;
    void release_alone(ballot& b, instant now);
    void answered_release_alone(ballot& b, const redis::reply_view& reply, instant now);
    void failed_release_alone(ballot& b, const failure& why, instant now);
    void check_leaving(ballot& b, instant now);
    void give_back(ballot& b, fencing_token token, instant now);
    void forget(ballot& b);

    // one token for all (vote_raise.cpp)
    void answered_raise(ballot& b, const redis::reply_view& reply, instant now);
    void raised(ballot& b, instant now);
    void raise_later(ballot& b, instant now);
    void failed_raise(ballot& b, const failure& why, instant now);
    void send_raise(ballot& b, instant now);

    // shared
    void set_timer(ballot& b, instant now);
    scripts::lock_terms lock_of(const ballot& b, instant now) const;
    hold_id::spelled id_of(const ballot& b) const noexcept;
    std::uint64_t number_of(const ballot& b) const noexcept;
    ballot* find_in_line(std::string_view id) const;
    const hold_terms& terms_of(const ballot& b) const noexcept;
    const lock_keys& keys_of(const ballot& b) const noexcept { return *terms_of(b).keys; }
    errands& busy(ballot& b);
    void rest_if_idle(ballot& b) noexcept;
    call& start_call(purpose what, ballot& b);
    void finish_call(call& finished);
    void drop_call(ballot& b, call* errands::*which);
    failure classify(const redis::reply_view& error_reply);
    refusal nonsense() const;
    milliseconds drift(milliseconds lease) const noexcept {
        return lease / 100 + milliseconds(2) + settings_.clock_skew;
    }
    milliseconds margin(milliseconds lease) const noexcept { return lease * settings_.lost_margin_percent / 100; }

    voter_settings settings_;
    const client_id& client_;
    outbox& out_;
    random_source& random_;
    counter& told_;
    std::optional<std::chrono::microseconds> clock_at_boot_;
    wake_channels wakes_;
    timer_heap timers_;
    ballot_list ballots_;  // those that are not gone, in the order they came
    // By the counter of their hold id: those to whom a grant may be pushed. Every acquisition has a place here, if for
    // a moment.
    boost::unordered_flat_map<std::uint64_t, ballot*> in_line_;
    std::vector<std::unique_ptr<call>> calls_;  // every one ever made; those not under way are in idle_calls_
    std::vector<call*> idle_calls_;
    std::size_t renewals_under_way_ = 0;
    bool was_reached_ = false;
    spares<errands> spare_errands_;
};

}  // namespace holdfast::engine
