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

    void at(instant when, action what) { events_.push({when < now_ ? now_ : when, next_++, keep(std::move(what))}); }
    void after(boottime::duration wait, action what) { at(now_ + wait, std::move(what)); }

    /// The next event, unless it lies behind `end`; then time goes on to `end`.
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
    // Its action is elsewhere, because the queue moves events about.
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
    std::vector<std::size_t> free_;  // places in it
};

}  // namespace holdfast::sim
