// Commands that are not written yet, in the order of writing, each with a deadline.
//
// Commands that must be sent again come before the new ones, in the order in which they came back: what was asked first
// runs first.
//
// The queue reads only the deadline of a command, which may become later meanwhile, and never earlier. The caller
// maintains the state of the commands. earliest_deadline() takes constant time: the queue keeps a lower bound.
#pragma once

#include "base/clock.hpp"
#include "redis/session/command.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

namespace holdfast::redis {

class command_queue {
public:
    using const_iterator = std::deque<command*>::const_iterator;

    void add(command& request) {
        earliest_ = std::min(earliest_, request.deadline());
        queue_.push_back(&request);
    }
    // Behind the others that are sent again, before the new ones.
    void add_before_new(command& request) {
        earliest_ = std::min(earliest_, request.deadline());
        queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(sent_again_++), &request);
    }
    bool contains(const command& request) const {
        return std::find(queue_.begin(), queue_.end(), &request) != queue_.end();
    }

    // False: it is not in this queue.
    bool remove(const command& request) {
        const auto found = std::find(queue_.begin(), queue_.end(), &request);
        if (found == queue_.end()) return false;
        if (found - queue_.begin() < static_cast<std::ptrdiff_t>(sent_again_)) --sent_again_;
        queue_.erase(found);
        return true;
    }
    void clear() noexcept {
        queue_.clear();
        sent_again_ = 0;
        earliest_ = never;
    }
    std::deque<command*> take_all() {
        std::deque<command*> taken = std::exchange(queue_, {});
        clear();
        return taken;
    }
    // The commands for which `wanted(const command&)` is true, in order. `wanted` must not change this queue.
    template <class Predicate>
    std::deque<command*> take_if(Predicate wanted) {
        std::deque<command*> taken;
        std::deque<command*> kept;
        std::size_t kept_of_sent_again = 0;
        earliest_ = never;
        for (std::size_t position = 0; position < queue_.size(); ++position) {
            command* const request = queue_[position];
            if (wanted(std::as_const(*request))) {
                taken.push_back(request);
                continue;
            }
            earliest_ = std::min(earliest_, request->deadline());
            kept.push_back(request);
            if (position < sent_again_) ++kept_of_sent_again;
        }
        queue_ = std::move(kept);
        sent_again_ = kept_of_sent_again;
        return taken;
    }
    // The commands whose deadline has come.
    std::deque<command*> take_due(instant now) {
        if (now < earliest_deadline()) return {};
        return take_if([now](const command& each) { return each.deadline() <= now; });
    }

    // Never later than the earliest.
    instant earliest_deadline() const noexcept { return queue_.empty() ? never : earliest_; }
    bool empty() const noexcept { return queue_.empty(); }
    std::size_t size() const noexcept { return queue_.size(); }
    const_iterator begin() const noexcept { return queue_.begin(); }
    const_iterator end() const noexcept { return queue_.end(); }

private:
    std::deque<command*> queue_;
    std::size_t sent_again_ = 0;  // that many at the front
    instant earliest_ = never;    // a lower bound of the deadlines
};

}  // namespace holdfast::redis
