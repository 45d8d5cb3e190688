// What became of each lock: who held it, how long, who waited. As far as successive looks show it: of a hold that was
// over before the next look only its token is seen.
//
// Bounded: so many locks, and of each so many holds and waits. The locks on which nothing has happened for the longest
// time are forgotten first. What is out of sight is compared when it comes back: so many locks, too, the latest seen.
#pragma once

#include "cli/inspect/locks/lock_events.hpp"
#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/output/json_form.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

struct past_hold {
    std::string id;
    std::string who;
    std::string mode;
    std::optional<std::uint64_t> token;
    microseconds since{0};               // since the epoch, by the server's clock, as all instants here
    std::optional<microseconds> until;   // none: it goes on
    bool has_expired = false;            // it was not released
    std::optional<microseconds> waited;  // none: it did not wait, or that was not seen
};

struct past_wait {
    std::string id;
    std::string who;
    microseconds since{0};
    microseconds until{0};
    bool has_acquired = false;  // otherwise it gave up
};

// Waiting times by their upper bounds. The first ends are those who did not wait, the last have no bound.
struct waiting_times {
    static constexpr std::array<std::int64_t, 7> bounds_ms{0, 10, 100, 1000, 10'000, 60'000, 600'000};

    void add(microseconds waited, bool has_acquired);

    std::array<std::uint64_t, bounds_ms.size() + 1> acquired{};
    std::array<std::uint64_t, bounds_ms.size() + 1> gave_up{};
};

struct lock_past {
    std::deque<past_hold> holds;  // the oldest first
    std::deque<past_wait> waits;
    waiting_times times;
    std::uint64_t grants = 0;  // seen
    std::uint64_t unseen = 0;  // how often tokens were given out between two looks
    microseconds changed_at{0};
};

struct history_limits {
    std::size_t locks = 1000;
    std::size_t holds = 60;   // of each lock
    std::size_t waits = 120;  // of each lock
};

class lock_history {
public:
    explicit lock_history(history_limits limits = {}) : limits_(limits) {}

    // A look at all locks. `is_complete`: what is not among them is free; otherwise it may be out of sight.
    void add(const std::vector<lock_state>& locks, bool is_complete);
    // Null if nothing was seen of it. `key` is the lock's key.
    const lock_past* of(const std::string& key) const;
    std::size_t size() const noexcept { return pasts_.size(); }
    // With how many locks the next look is compared.
    std::size_t compared() const noexcept { return latest_.size(); }

private:
    void add(const lock_state& now);
    void note(const lock_state& now, const lock_event& event);
    void forget_some();
    void forget_some_out_of_sight(const std::set<std::string_view>& seen);

    const history_limits limits_;
    std::map<std::string, lock_state> latest_;
    std::map<std::string, lock_past> pasts_;
};

json to_json(const lock_past& past);

}  // namespace holdfast::cli
