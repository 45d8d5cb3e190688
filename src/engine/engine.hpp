// The brain: owners and their levels, and counting the nodes' votes.
//
// Sans-I/O: no socket, no thread, no clock, no random device. Events come in, each with `now` and the node they are
// about; calls go out through the nodes' outboxes; time is asked for by deadline(). Lives in the client's serial
// section.
//
// A single server is a quorum of one. All nodes are asked at the same time, by one node_agent each; a lock is held
// while a majority of the votes are, until the majority-th longest of their validities ends.
//
// Invariants:
//  (1) acquired() is called when a majority holds and is valid; from then on the hold's validity is that of its
//      majority-th best vote, and it is lost when fewer than a majority are left. Lost is for ever.
//  (2) What ends a hold ends all its votes, those included that never answered.
//  (3) Every request ends: with an answer, or at its deadline.
#pragma once

#include "engine/hold.hpp"
#include "engine/node_agent.hpp"
#include "engine/pacing.hpp"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace holdfast::engine {

enum class votes_now : std::uint8_t { fewer, more };

struct vote_count {
    std::size_t in_favour = 0;
    std::size_t nodes = 0;
};

// Hears what happens, in the serial section: for counting and logging, not for acting.
class observer {
public:
    virtual void on_acquired(std::chrono::nanoseconds waited, how got) = 0;
    virtual void on_reentered() = 0;
    virtual void on_refused() = 0;
    virtual void on_released(std::chrono::nanoseconds held) = 0;
    virtual void on_renewed() = 0;
    virtual void on_renewal_failed(const failure& why) = 0;
    virtual void on_lost(const std::string& lock, errc why) = 0;
    // Of a hold on several nodes, which goes on: so many of them vote for it now.
    virtual void on_votes(const std::string& lock, votes_now what, vote_count count) = 0;

protected:
    ~observer() = default;
};

struct engine_settings {
    milliseconds request_timeout{2000};
    // Whoever waits without a limit gives nodes that were never reached so long.
    milliseconds first_connect{10'000};
    milliseconds fence_retention{3600 * 1000};
    // lost() fires this part of a lease before validity ends.
    unsigned lost_margin_percent = 10;
    // See node_agent_settings.
    milliseconds clock_skew{0};
    std::size_t most_renewals = 1000;
    unsigned max_depth = 100'000;
};

// Nodes that do not vote yet.
struct recovery {
    struct node {
        std::string server;
        milliseconds votes_in{0};
    };
    std::vector<node> nodes = {};
    milliseconds enough_in{0};  // until a majority votes; zero: one does, or too few can be reached
};

// A place that votes: how to reach it, and its name for messages.
struct node_link {
    outbox* out = nullptr;
    std::string server;
    channels listens = channels::one;
};

// Of one hold; more nodes than these are rare.
using node_holds = boost::container::small_vector<node_hold*, 7>;

class engine final : public counter {
public:
    engine(engine_settings settings, const std::vector<node_link>& nodes, random_source& random, observer& watcher);
    ~engine();
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    const client_id& id() const noexcept { return client_; }

    // --- requests
    // Re-enters if terms.owner holds the lock already, or upgrades what it reads. May call back before it returns.
    void acquire(acquire_completion& request, acquire_terms terms, instant now);
    // Ends an acquisition that is under way with `why`, giving back what it may have got. No effect if it has ended.
    void cancel(acquire_completion& request, errc why, instant now);
    // Has a hold that reads write as well; the read hold stays, whatever comes of it. Called back like acquire().
    void upgrade(hold& held, acquire_completion& request, patience limit, instant now);
    // One level of it; there must be one. The request (may be null) is answered at `answer_by` at the latest; the
    // release itself goes on. When the last exclusive level goes and a shared one stays, it is a downgrade.
    void release(hold& held, access level, hold_completion* request, instant answer_by, instant now);
    // An exclusive level becomes a shared one.
    void downgrade(hold& held, hold_completion& request, instant answer_by, instant now);
    // Makes the lease full again now.
    void renew(hold& held, hold_completion& request, instant now);
    // Hears recalls of that lock from now on, even if nobody ever waits for it.
    void keep_listening(const lock_keys& keys);
    // The owner will never release: what it holds is renewed no longer, told as lost, and forgotten.
    void abandon(owner_id owner, instant now);
    // The hold that this owner has on that lock, lost or not; null if none.
    hold* find(owner_id owner, const lock_keys& keys);
    // Not lost, and its validity has not run out.
    static bool is_held(const hold& h, instant now) noexcept { return h.state_ == state::held && !ran_out(h, now); }

    // Which nodes do not vote about that lock yet, because they may have forgotten holds that are still believed in.
    recovery recovery_of(const lock_keys& lock, instant now) const;

    // --- events, each of one node
    node_agent& node(std::size_t number) noexcept { return *agents_[number]; }
    void on_timer(instant now);
    instant deadline() const noexcept;

    std::size_t holds() const noexcept { return holds_.size(); }

private:
    using state = hold::state;
    // While something is done to all its votes it is not forgotten, whatever becomes of them.
    class in_hand {
    public:
        explicit in_hand(hold& h) noexcept : h_(h) { h_.in_hand_ = true; }
        void let_go() const noexcept { h_.in_hand_ = false; }

    private:
        hold& h_;
    };
    // Nodes that do not vote for a hold are asked again after this part of its lease.
    static constexpr int heal_part = 3;

    void granted(node_hold& b, how got, instant now) override;
    void queued(node_hold& b, instant now) override;
    void refused(node_hold& b, const refusal& why, instant now) override;
    void extended(node_hold& b, instant now) override;
    void lost(node_hold& b, errc why, instant now) override;
    void recalled(node_hold& b, instant now) override;
    void renewed(node_hold& b, const node_answer& answer, instant now) override;
    void renewal_failed(const failure& why) override { watcher_.on_renewal_failed(why); }
    void changed(node_hold& b, const node_answer& answer, instant now) override;
    void released(node_hold& b, const node_answer& answer, instant now) override;
    void gone(node_hold& b) override;
    void raised(node_hold& b, instant now) override;
    void links_changed(const lock_set& which, instant now) override;
    void owners_changed() override;
    void clock_told(instant now) override;
    bool is_asked_for(const node_hold& b) const override { return b.whole().is_asked_for(); }
    fencing_token proposal(instant now) const override;
    fencing_token floor() const override { return floor_; }
    void saw(fencing_token token) override { floor_ = std::max(floor_, token); }

    // counting.cpp
    void reenter(hold& mine, acquire_completion& request, const acquire_terms& terms, instant now);
    bool reads_a_stripe(const acquire_terms& terms);
    bool is_too_deep(const hold& h) const noexcept;
    void reentered(hold& h, acquire_completion& request, instant now);
    hold& make_hold(hold_terms terms);
    void begin_acquisition(hold& h, acquire_completion& request, patience limit, instant now);
    void ask_all(hold& h, instant now);
    patience patience_of_votes(const hold& h) const noexcept;
    void count(hold& h, how got, instant now);
    void one_more(hold& h);
    void check_hope(hold& h, instant now);
    void leave_lines(hold& h, instant now);
    void fail(hold& h, refusal why, instant now);
    void undo_votes(hold& h, instant now);
    void undo_upgrade(hold& h, instant now);
    static errc code_when_late(const hold& h) noexcept;
    refusal too_late(const hold& h, instant now) const;
    refusal recovering(const lock_keys& lock, instant now) const;
    std::string why_out_of_reach(const hold& h) const;
    void check_reach(hold& h, instant now);
    acquire_completion* end_acquisition(hold& h);

    // gathering.cpp
    bool agree_on_token(hold& h, const node_holds& mine, instant now);
    void gather(hold& h, instant now);
    void check_gathering(hold& h, instant now);
    void withdraw(hold& h, instant now);
    static bool waits(const hold& h) noexcept;
    void want_links(const hold& h);
    void ask_those_who_refused(hold& h, instant now);
    std::string make_ticket(instant now);
    std::string ticket_of(instant asked);
    static bool is_queued(const hold& h) noexcept;
    void move_tickets(instant now);
    void give_ticket(hold& h, std::string ticket, instant now);
    std::optional<std::chrono::microseconds> common_clock_at_boot() const;
    std::optional<std::uint64_t> common_clock_us(instant now) const;

    // pacing.cpp
    bool is_unanswered(const hold& h) const;
    pace& pace_of(const hold& h);
    bool hold_back(hold& h);
    static void count_as_unanswered(hold& h, pace& of_lock);
    void ask_if_room(hold& h, instant now);
    static void take_back(hold& h, pace& of_lock);
    void stop_holding_back(hold& h);
    void fill_room(const hold& h);
    void slow_down_if_unanswered(hold& h);
    void check_pace(hold& h);

    // keeping.cpp
    static bool is_backed_by(const hold& h, const node_hold& b) noexcept;
    std::size_t backing(const hold& h) const;
    instant validity_of(const node_holds& backing) const;
    void count_validity(hold& h);
    void one_less(hold& h, errc why, instant now);
    void count_again(hold& h, instant now);
    void tell_votes(hold& h, votes_now what);
    void lose(hold& h, errc why, instant now);
    void renew_votes(hold& h, instant now);
    void heal(hold& h, instant now);
    void release_level(hold& h, access level, hold_completion* request, instant answer_by, instant now);
    static pending_work::poll_of_nodes& poll_about(pending_work& all, answer_to what) noexcept;
    static bool is_waited_for(const hold& h, answer_to what) noexcept;
    void open_poll(hold& h, answer_to what, hold_completion* request, instant answer_by);
    void take(node_hold& b, answer_to what, const node_answer& said);
    static void answer(hold& h, answer_to what, std::optional<refusal> why_not);
    static void refuse(hold& h, answer_to what, errc code, std::string_view detail);
    static void refuse_late(hold& h, answer_to what, instant now, errc code, std::string_view detail);
    void check(hold& h, instant now);

    // shared
    std::size_t majority() const noexcept { return agents_.size() / 2 + 1; }
    bool several() const noexcept { return agents_.size() > 1; }
    node_holds in_favour(const hold& h) const;
    milliseconds margin(milliseconds lease) const noexcept { return lease * settings_.lost_margin_percent / 100; }
    node_agent& agent_of(const node_hold& b) noexcept;
    template <typename Counts>
    std::size_t votes(const hold& h, Counts counts) const {
        const auto all = h.votes();
        return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), counts));
    }
    // Enough nodes have been reached at some time.
    bool was_reached() const noexcept;
    // The nodes at which that lock can be asked for now.
    std::size_t links_up(const hold& h) const;
    // By our own clock; the timer that tells so may be late.
    static bool ran_out(const hold& h, instant now) noexcept { return now >= h.valid_until_; }
    void disown(hold& h);
    void forget_if_gone(hold& h);
    void set_timer(hold& h);
    pending_work& under_way(hold& h);
    void drop_pending(hold& h) noexcept;

    struct owned_lock {
        owner_id owner;
        std::string lock;
        friend bool operator==(const owned_lock&, const owned_lock&) = default;
    };
    struct owned_lock_hash {
        std::size_t operator()(const owned_lock& key) const noexcept;
    };

    engine_settings settings_;
    random_source& random_;
    observer& watcher_;
    client_id client_;
    std::vector<std::unique_ptr<node_agent>> agents_;
    std::uint64_t next_counter_ = 0;
    timer_heap timers_;
    spares<pending_work> spare_pending_;
    boost::intrusive::list<hold> holds_;  // in the order they were asked for
    std::unordered_map<owned_lock, hold*, owned_lock_hash> owned_;
    paces paces_;  // of locks whose nodes do not answer in time
    // The highest token seen per lock would grow without bound; one floor for all names of this client is as
    // good: tokens are server times, and a floor only has to be high enough.
    fencing_token floor_ = 0;
    std::uint64_t last_ticket_ = 0;
    std::optional<std::chrono::microseconds> tickets_by_;  // the common clock that they were made by
    instant tickets_moved_{};                              // last
};

}  // namespace holdfast::engine
