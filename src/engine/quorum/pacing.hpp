// How many acquisitions of one lock are asked for at a time, where the nodes do not answer in time.
//
// An acquisition that ends before its nodes have answered leaves work behind: a request that nobody wants any more, and
// the release that undoes it. If callers try again sooner than the nodes finish that work, it only grows; the next
// request waits behind it, and is given up as well. So the first acquisition that is given up unanswered sets a limit
// for its lock: how many may be unanswered at a time, those included that were given up. Others are held back. One
// whose deadline comes meanwhile has cost the nodes nothing.
//
// The limit moves as TCP's window does: up by one when as many were answered in time as it allows, down by half for
// each one given up. It ends when nothing is unanswered and nobody is held back. An acquisition without a deadline is
// never held back: nobody gives it up.
#pragma once

#include "engine/quorum/hold_store.hpp"
#include "engine/quorum/node_set.hpp"

#include <map>
#include <unordered_map>

namespace holdfast::engine {

class pacing {
public:
    pacing(hold_store& holds, const node_set& nodes) : holds_(holds), nodes_(nodes) {}

    // True: not now. Its timer comes when there is room.
    bool hold_back(hold& h);
    // True: it may be asked for now.
    bool take_room(hold& h);
    // Nobody wants it any more.
    void stop_holding_back(hold& h);
    // It was given up: nobody wants the answers any more, but the nodes have the work.
    void given_up(hold& h);
    // A node has answered.
    void answered(hold& h);

private:
    // Of one lock.
    struct pace {
        std::size_t limit = 1;
        std::size_t unanswered = 0;
        std::size_t in_time = 0;  // answers since the limit was changed
        // By their deadlines. The one with the most time left goes first: its answer is the most likely to be wanted.
        std::multimap<instant, hold*> held_back = {};

        std::size_t room() const noexcept { return limit - std::min(limit, unanswered); }
        bool is_over() const noexcept { return unanswered == 0 && held_back.empty(); }
        void answered_in_time() noexcept {
            if (++in_time >= limit) change_limit(limit + 1);
        }
        void given_up() noexcept { change_limit(std::max<std::size_t>(limit / 2, 1)); }
        void change_limit(std::size_t to) noexcept {
            limit = to;
            in_time = 0;
        }
    };

    pace& of(const hold& h) { return paces_.find(h.terms().keys->lock())->second; }
    static void count_as_unanswered(hold& h, pace& of_lock);
    static void take_back(hold& h, pace& of_lock);
    void fill_room(const hold& h);
    std::size_t minority() const noexcept { return nodes_.size() - nodes_.majority(); }

    hold_store& holds_;
    const node_set& nodes_;
    std::unordered_map<std::string, pace> paces_;  // by the lock's key: those whose nodes do not answer in time
};

}  // namespace holdfast::engine
