// Virtual time: what happens next, and when. Events of one instant happen in the order they were asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace holdfast::sim {

class timeline {
public:
    using action = std::function<void()>;

    instant now() const { return now_; }

    void at(instant when, action what) { events_.push({when < now_ ? now_ : when, next_++, std::move(what)}); }
    void after(boottime::duration wait, action what) { at(now_ + wait, std::move(what)); }

    /// The next event, unless it lies behind `end`; then time goes on to `end`.
    bool step(instant end) {
        if (events_.empty() || events_.top().when > end) {
            now_ = end;
            return false;
        }
        event due = std::move(const_cast<event&>(events_.top()));  // popped at once
        events_.pop();
        now_ = due.when;
        due.what();
        return true;
    }

private:
    struct event {
        instant when;
        std::uint64_t number;
        action what;
        bool operator<(const event& other) const {
            return when != other.when ? when > other.when : number > other.number;
        }
    };

    instant now_{std::chrono::hours(1)};
    std::uint64_t next_ = 0;
    std::priority_queue<event> events_;
};

}  // namespace holdfast::sim
