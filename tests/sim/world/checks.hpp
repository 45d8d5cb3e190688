// What everyone who watches a scenario goes by: the time, the server, who had trouble, what is excused, and the
// verdict.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "world/server.hpp"

namespace holdfast::sim {

// The dead holder's lease, then the stagger of the whole line, then a trip there and back.
inline constexpr milliseconds found_out_within{320};
inline constexpr milliseconds entered_within{120};

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

    /// Whose client had no trouble since then, and has none now.
    std::function<bool(std::string_view client, instant since)> calm_since;
    std::function<void(const std::string&)> trace;
    server* watched = nullptr;  // the one where a script runs, or ran last
    /// Where a lock is now.
    std::function<server&(const std::string& lock)> server_of = [this](const std::string&) -> server& {
        return *watched;
    };
    /// Since when its slot has not moved, nor anything that followed from that; never: it is moving.
    std::function<instant(const std::string& lock)> settled_since = [](const std::string&) { return instant{}; };
    /// Where that client hears that its turn has come.
    std::function<std::string(const std::string& lock, std::string_view client)> channel_of =
        [](const std::string&, std::string_view client) { return "hf:wake:" + std::string(client); };

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

    /// What the scenario did outside the promise.
    struct excuses {
        bool overlap = false;  // data lost without mistrust, or the server's clock set forward
        bool data_lost = false;
        bool set_back = false;  // the server's clock
        bool jumped = false;    // either way
        bool corrupted = false;
        // Replicas cannot be asked for a hold that has moved before the rest of its slot: its lease may run out.
        bool slow_moves = false;
    };
    excuses excused;

    /// Tokens may repeat: the mark was lost, and the clock set back.
    bool tokens_may_repeat() const { return (excused.data_lost || excused.corrupted) && excused.set_back; }

    /// By id and token: the grants that were made, as the server shows them.
    std::set<std::pair<std::string, std::uint64_t>> made;
    /// By id and token: the grants that their clients know of.
    std::set<std::pair<std::string, std::uint64_t>> entered;
    std::set<std::string, std::less<>> lost;  // ids whose clients were told so
    std::uint64_t next_number = 1;            // in the order of arrival

    /// An acquire has run.
    void note_acquire(const std::string& id, milliseconds lease) {
        last_ask& last = last_asks_[id];
        last = {std::max(last.sent, watched->command_sent()), now(), lease};
    }
    /// Of its acquires, none had been sent less than a lease before the last one ran: that was a copy, whose caller may
    /// have given up so long before that it remembers nothing.
    bool may_be_forgotten(std::string_view id) const {
        const auto found = last_asks_.find(id);
        return found != last_asks_.end() && found->second.ran - found->second.sent > found->second.lease;
    }

protected:
    ~checks() = default;

private:
    struct last_ask {
        instant sent{};  // the one that was sent last
        instant ran{};   // the one that ran last
        milliseconds lease{0};
    };

    timeline& time_;
    std::string verdict_;
    std::map<std::string, last_ask, std::less<>> last_asks_;
};

}  // namespace holdfast::sim
