// Decides how long a caller that leads looks for its answer before it sleeps: it spins.
//
// Waking a sleeping core costs more than a round trip on the same machine. So a caller looks for a moment; the answer
// then costs no wake-up. Measured by `./dev bench uncontended`, beside blocking sockets and sockets that look, too.
//
// The policy has no clock: the caller tells what each look brought.
//   - It looks twice as long as answers have taken, within bounds. Looks in vain make the time longer, up to the bound.
//   - After a look in vain, which is the rule for remote servers and for waiters in a queue, the next lead does not
//     look; after the next one in vain the next three do not, and so on, up to `most_skipped`. So it looks again
//     regularly.
//   - Looks in vain have a budget: one part in `budget_part` of the time that passes, `largest_budget` at most.
//   - Where another thread ran on the core during a look, threads wait for cores: it does not look for a while.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace holdfast::api {

class spin_policy {
public:
    using time = std::chrono::nanoseconds;

    static constexpr time first_look = std::chrono::microseconds(50);
    static constexpr time shortest_look = std::chrono::microseconds(30);
    static constexpr time longest_look = std::chrono::microseconds(100);
    static constexpr int most_skipped = 31;
    static constexpr int budget_part = 20;
    static constexpr time largest_budget = std::chrono::milliseconds(2);

    // Nothing: by the rules above. Otherwise always that long; zero: never.
    explicit spin_policy(std::optional<std::chrono::microseconds> fixed = {}) noexcept : fixed_(fixed) {}

    // For the next lead. Zero: do not look.
    time look_for(instant now) noexcept {
        if (fixed_) return *fixed_;
        budget_ = std::min(largest_budget, budget_ + (now - counted_until_) / budget_part);
        counted_until_ = now;
        if (skip_ > 0) {
            --skip_;
            return time(0);
        }
        return budget_ < look_ ? time(0) : look_;
    }

    enum class outcome { answered, in_vain };
    enum class core { kept, shared };  // shared: another thread ran there meanwhile

    void looked(time took, outcome brought, core had) noexcept {
        if (fixed_) return;
        if (brought == outcome::answered) {
            usual_ += (took - usual_) / 8;
            skips_ = 0;
        } else {
            usual_ += usual_ / 8;
            budget_ -= took;
            skips_ = std::min(2 * skips_ + 1, most_skipped);
        }
        if (had == core::shared) skips_ = most_skipped;
        skip_ = skips_;
        look_ = std::clamp(2 * usual_, shortest_look, longest_look);
        usual_ = std::min(usual_, longest_look / 2);
    }

private:
    const std::optional<std::chrono::microseconds> fixed_;
    time look_ = first_look;
    time usual_ = first_look / 2;  // how long answers take that a look brought
    time budget_ = largest_budget;
    instant counted_until_{};
    int skips_ = 0;  // leads without a look after the last one in vain
    int skip_ = 0;   // of these, how many are left
};

}  // namespace holdfast::api
