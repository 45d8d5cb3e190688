// Somebody who uses locks, as the scenario sees it: an actor, or one that shares what its client keeps.
#pragma once

#include <string>

#include "world/random_stream.hpp"
#include "world/timeline.hpp"

namespace holdfast::sim {

// Virtual timers fire exactly. Only the timers of a paused process are late.
inline constexpr milliseconds punctual{1};
inline constexpr milliseconds after_a_pause{20};
// Whoever does not wait for a lock, or waits for an answer only, allows this much.
inline constexpr milliseconds request_time{500};

class user {
public:
    user() = default;
    user(const user&) = delete;
    user& operator=(const user&) = delete;
    virtual ~user() = default;

    virtual void start() = 0;
    /// No request in flight and no hold.
    virtual bool idle() const = 0;
    virtual bool waits_for(const std::string& lock) const = 0;
    /// Lost or not, it has not released its hold. A renewal that was in flight when it lost the hold may have made the
    /// lease full again.
    virtual bool keeps(const std::string& lock) const = 0;
    /// It waits in the queue by itself: nobody who asks later comes before it.
    virtual bool has_own_position() const = 0;
    virtual instant asked_at() const = 0;
    /// Its process has died, so its belief ends.
    virtual void died() = 0;
    virtual std::string describe() const = 0;
};

}  // namespace holdfast::sim
