// How many acquisitions of one lock are asked for at a time, where the nodes do not answer in time.
//
// An acquisition that ends before its nodes have answered leaves work behind: a request that nobody wants any more, and
// the release that undoes it. If callers try again sooner than the nodes get that done, the work only grows; whatever
// is asked for next waits behind it, and is given up as well. So the first one that is given up unanswered sets a limit
// for its lock: how many acquisitions may be unanswered at a time, those included that were given up. Others are held
// back. One whose deadline comes meanwhile has cost the nodes nothing.
//
// The limit moves as TCP's window does: up by one when as many were answered in time as it allows, down by half for
// each one given up. It ends when nothing is unanswered and nobody is held back. An acquisition without a deadline is
// never held back: nobody gives it up.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>

namespace holdfast::engine {

class hold;

// Of one lock.
struct pace {
    std::size_t limit = 1;
    std::size_t unanswered = 0;
    std::size_t in_time = 0;  // answers since the limit was changed
    // By their deadlines. The one with the most time left goes first: its answer is the most likely to be wanted still.
    std::multimap<instant, hold*> held_back = {};

    std::size_t room() const noexcept { return limit - std::min(limit, unanswered); }
    bool is_over() const noexcept { return unanswered == 0 && held_back.empty(); }

    void answered_in_time() noexcept {
        if (++in_time < limit) return;
        ++limit;
        in_time = 0;
    }
    void given_up() noexcept {
        limit = std::max<std::size_t>(limit / 2, 1);
        in_time = 0;
    }
};

using paces = std::unordered_map<std::string, pace>;  // by the lock's key

}  // namespace holdfast::engine
