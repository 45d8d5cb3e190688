// Virtual time and the events that are due. Events of one instant run in the order in which they were scheduled.
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

    void at(instant when, action what) { events_.push({when < now_ ? now_ : when, next_++, keep(std::move(what))}); }
    void after(boottime::duration wait, action what) { at(now_ + wait, std::move(what)); }

    /// When the next event is due; `never`: there is none.
    instant next() const { return events_.empty() ? never : events_.top().when; }

    /// Runs the next event that is due by `end`. Without one, advances time to `end` and returns false.
    bool step(instant end) {
        if (events_.empty() || events_.top().when > end) {
            now_ = end;
            return false;
        }
        const event due = events_.top();
        events_.pop();
        now_ = due.when;
        const action what = std::exchange(actions_[due.what], nullptr);
        free_.push_back(due.what);
        what();
        return true;
    }

private:
    // The action is stored elsewhere, because the priority queue moves its events.
    struct event {
        instant when;
        std::uint64_t number;
        std::size_t what;
        bool operator<(const event& other) const {
            return when != other.when ? when > other.when : number > other.number;
        }
    };

    std::size_t keep(action what) {
        if (free_.empty()) {
            actions_.push_back(std::move(what));
            return actions_.size() - 1;
        }
        const std::size_t index = free_.back();
        free_.pop_back();
        actions_[index] = std::move(what);
        return index;
    }

    instant now_{std::chrono::hours(1)};
    std::uint64_t next_ = 0;
    std::priority_queue<event> events_;
    std::vector<action> actions_;    // by event::what
    std::vector<std::size_t> free_;  // free indexes
};

}  // namespace holdfast::sim
