// What all checks share: the time, the server, which clients had trouble, what is excused, and the verdict.
//
// Invariant: the verdict is the first violation; later ones do not replace it.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "wire/hold_id.hpp"
#include "world/server.hpp"

namespace holdfast::sim {

// After a holder's lease ends: the stagger of the polls of the whole queue, then a round trip.
inline constexpr milliseconds found_out_within{320};
inline constexpr milliseconds entered_within{120};
// Of waiters that poll: leases here are at most 4 s long.
inline constexpr milliseconds longest_told_interval{1400};

inline milliseconds to_ms(std::string_view text) {
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return milliseconds(number);
}

class checks {
public:
    explicit checks(timeline& time) : time_(time) {}
    checks(const checks&) = delete;
    checks& operator=(const checks&) = delete;

    /// True if this client has had no trouble since then, and has none now.
    std::function<bool(std::string_view client, instant since)> calm_since;
    std::function<void(const std::string&)> trace;
    server* watched = nullptr;  // where a script runs, or ran last
    /// The server that has the lock now.
    std::function<server&(const std::string& lock)> server_of = [this](const std::string&) -> server& {
        return *watched;
    };
    /// The time since which the lock's slot has not moved and the effects of its last move are over; `never`: it is
    /// moving.
    std::function<instant(const std::string& lock)> settled_since = [](const std::string&) { return instant{}; };
    /// The channel on which this client receives grants of this lock.
    std::function<std::string(const std::string& lock, std::string_view client)> channel_of =
        [](const std::string&, std::string_view client) { return "hf:wake:" + std::string(client); };

    /// Clients that listen nowhere and poll, by their ids.
    std::set<std::string, std::less<>> pollers;
    bool polls(std::string_view client) const { return pollers.contains(client); }
    /// A waiter that polls is handed the lock while it polls, by the server's clock, and learns that by its next poll.
    /// Its position may have moved since to a member of a Cluster whose clock is behind.
    bool may_learn_late(const std::string& lock, std::string_view client, milliseconds interval,
                        instant last_poll) const {
        const bool clock_is_sound =
            !excused.jumped && !excused.data_lost && !excused.corrupted && settled_since(lock) <= last_poll;
        return polls(client) && (!clock_is_sound || now() - last_poll <= 2 * interval + interval / 10);
    }

    /// For so long a waiter may not notice that its turn has come. The first one is told; but one that polls cannot be
    /// told that it is the first now, and finds out by the poll that it has planned.
    milliseconds finds_out_within(std::string_view client, bool is_first, milliseconds interval) const {
        return found_out_within + (is_first && !polls(client) ? milliseconds(0) : interval);
    }

    bool listens(const std::string& lock, std::string_view client) const {
        return watched->listens(channel_of(lock, client));
    }

    void fail(std::string what) {
        if (verdict_.empty()) verdict_ = std::move(what);
    }
    bool failed() const { return !verdict_.empty(); }
    const std::string& verdict() const { return verdict_; }
    instant now() const { return time_.now(); }
    timeline& time() { return time_; }

    /// The effects of faults outside the promise.
    struct excuses {
        bool overlap = false;  // data lost on a trusted server, or the server's clock set forward
        bool data_lost = false;
        bool set_back = false;  // the server's clock was set back
        bool jumped = false;    // the server's clock, forward or back
        bool corrupted = false;
        // Replicas cannot confirm a hold that has moved before the rest of its slot: its lease may end.
        bool slow_moves = false;
    };
    excuses excused;

    /// Tokens may repeat: the fence was lost and the clock set back.
    bool tokens_may_repeat() const { return (excused.data_lost || excused.corrupted) && excused.set_back; }

    /// By id and token: the grants that the server shows.
    std::set<std::pair<std::string, std::uint64_t>> made;
    /// By id and token: the grants that their clients know of.
    std::set<std::pair<std::string, std::uint64_t>> entered;
    std::set<std::string, std::less<>> lost;  // ids whose clients know that they lost them
    std::uint64_t next_number = 1;            // in the order of arrival

    /// The numbers that a marked hold may use, by its id: those after its grant, up to what the server has told since.
    struct block {
        std::uint64_t first = 0;
        std::uint64_t last = 0;
    };
    std::map<std::string, block, std::less<>> blocks;
    /// Those of an earlier grant of the same id, of which a message may still tell.
    std::multimap<std::string, block, std::less<>> former_blocks;

    /// When a script last did this for an id.
    struct steps_done {
        instant renewed{};
        instant released{};  // what it held until then
        instant left{};      // a release ran, and afterwards it held nothing
    };
    std::map<std::string, steps_done, std::less<>> done;

    /// Since when nobody uses a hold that a client keeps, by its id; nothing if somebody does.
    std::function<std::optional<instant>(const std::string& id)> unused_since;
    /// A message and its answer take no longer where there is no trouble.
    milliseconds told_within{0};
    /// Somebody waits for this marked hold: if nobody uses it, it is given back as soon as its client knows. Ask
    /// `still_waits` whether anybody does.
    void expect_give_back(const std::string& lock, const std::string& id, const std::function<bool()>& still_waits) {
        if (!unused_since || asked_back_.contains(id)) return;
        asked_back_[id] = {now(), still_waits};
        check_give_back(lock, id, now(), still_waits);
    }
    /// The client knows of the hold only now; on a majority a server may have granted it long before.
    void is_known_to_its_client(const std::string& id) {
        if (const auto found = asked_back_.find(id); found != asked_back_.end()) found->second.at = now();
    }
    /// How many more users may follow each other in the process of that hold while others wait, if it is known.
    std::function<std::optional<unsigned>(const std::string& id)> passes_of;
    /// A user of that hold has begun, who asked at `asked`. Others wait at most as long as passes and time bound allow,
    /// from when its client can know of them.
    void check_pass(const std::string& lock, const std::string& id, milliseconds lease, instant asked) {
        const auto found = asked_back_.find(id);
        if (found == asked_back_.end()) return;
        asked_back& since = found->second;
        const bool calm = calm_since(wire::client_of(id), since.at) && settled_since(lock) <= since.at;
        if (!calm || excused.corrupted || excused.data_lost || excused.jumped || !since.still_waits()) return;
        const instant known = since.at + told_within;
        if (now() >= known + std::min<nanoseconds>(milliseconds(10), lease / 10) + milliseconds(1))
            fail("while others wait for " + lock + ", " + id + " is passed on for too long");
        const auto passes = passes_of(id);
        if (passes && asked > known && ++since.passes > 1 + *passes)
            fail("while others wait for " + lock + ", " + id + " is passed on too often");
    }

    /// Call after each run of an acquire script.
    void note_acquire(const std::string& id, milliseconds lease) {
        last_ask& last = last_asks_[id];
        last = {std::max(last.sent, watched->command_sent()), now(), lease};
    }
    /// True if the acquire that ran last was a late copy: every acquire of this id was sent more than a lease before
    /// that run. The client may have given up so long ago that it remembers nothing of the id.
    bool may_be_forgotten(std::string_view id) const {
        const auto found = last_asks_.find(id);
        return found != last_asks_.end() && found->second.ran - found->second.sent > found->second.lease;
    }

protected:
    ~checks() = default;

private:
    struct asked_back {
        instant at{};
        std::function<bool()> still_waits;
        unsigned passes = 0;
    };
    struct last_ask {
        instant sent{};  // latest time of sending
        instant ran{};   // latest time of running
        milliseconds lease{0};
    };

    void check_give_back(const std::string& lock, const std::string& id, instant since,
                         const std::function<bool()>& still_waits) {
        time_.after(told_within, [this, lock, id, since, still_waits] {
            const bool calm = calm_since(wire::client_of(id), since) && settled_since(lock) <= since;
            if (!calm || excused.corrupted || excused.data_lost || excused.jumped || !still_waits())
                return asked_back_.erase(id), void();
            const auto unused = unused_since(id);
            if (unused && *unused + told_within <= now()) fail("nobody uses " + id + ", and it was not given back");
            check_give_back(lock, id, since, still_waits);
        });
    }

    timeline& time_;
    std::string verdict_;
    std::map<std::string, asked_back, std::less<>> asked_back_;
    std::map<std::string, last_ask, std::less<>> last_asks_;
};

}  // namespace holdfast::sim
