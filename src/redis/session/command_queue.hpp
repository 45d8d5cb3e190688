// Commands that are not written yet, in the order in which they are to be, each with a deadline.
//
// Those that were sent before and must be sent again stand in front of the new ones, in the order in which they came
// back: what was asked first runs first.
//
// Knows nothing of a command but its deadline, which must not change while it stands here; what state it is in is the
// business of whoever puts it here. Asking for the earliest deadline costs nothing per command: a lower bound is kept.
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

    void add(command& request);
    // Behind the others that are sent again, before the new ones.
    void add_before_new(command& request);
    // False: it does not stand here.
    bool remove(const command& request);
    bool contains(const command& request) const;

    std::deque<command*> take_all();
    // Those of which `wanted(const command&)` is true, in order. It must not change this line.
    template <class Predicate>
    std::deque<command*> take_if(Predicate wanted);
    // Those whose deadline has come.
    std::deque<command*> take_due(instant now);
    void clear() noexcept;

    // Never later than the earliest.
    instant earliest_deadline() const noexcept { return line_.empty() ? never : deadline_bound_; }
    bool empty() const noexcept { return line_.empty(); }
    std::size_t size() const noexcept { return line_.size(); }
    const_iterator begin() const noexcept { return line_.begin(); }
    const_iterator end() const noexcept { return line_.end(); }

private:
    std::deque<command*> line_;
    std::size_t sent_again_ = 0;  // the first so many
    instant deadline_bound_ = never;
};

template <class Predicate>
std::deque<command*> command_queue::take_if(Predicate wanted) {
    std::deque<command*> taken;
    std::deque<command*> kept;
    std::size_t kept_of_sent_again = 0;
    deadline_bound_ = never;
    for (std::size_t address = 0; address < line_.size(); ++address) {
        command* const request = line_[address];
        if (wanted(std::as_const(*request))) {
            taken.push_back(request);
            continue;
        }
        deadline_bound_ = std::min(deadline_bound_, request->deadline());
        kept.push_back(request);
        if (address < sent_again_) ++kept_of_sent_again;
    }
    line_ = std::move(kept);
    sent_again_ = kept_of_sent_again;
    return taken;
}

}  // namespace holdfast::redis
