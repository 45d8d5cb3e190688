// Which of many things is due first. A binary heap of intrusive timers: setting, moving and cancelling one of
// n costs O(log n) and allocates nothing once warm, so 100,000 held locks renew cheaply.
#pragma once

#include "base/assert.hpp"
#include "base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast::engine {

// Derive from it what needs one timer.
class timed {
public:
    instant due() const noexcept { return due_; }
    bool is_set() const noexcept { return place_ != nowhere; }

private:
    friend class timer_heap;
    static constexpr std::uint32_t nowhere = static_cast<std::uint32_t>(-1);
    instant due_ = never;
    std::uint32_t place_ = nowhere;  // what is derived may use the bytes behind it
};

class timer_heap {
public:
    instant earliest() const noexcept { return heap_.empty() ? never : heap_.front()->due_; }

    // The first timer that is due, taken out of the heap; null if there is none.
    timed* take_due(instant now) {
        if (heap_.empty() || heap_.front()->due_ > now) return nullptr;
        timed* const first = heap_.front();
        take_out(*first);
        return first;
    }

    void set(timed& timer, instant due) {
        if (timer.is_set()) {
            const instant before = std::exchange(timer.due_, due);
            due < before ? sift_up(timer.place_) : sift_down(timer.place_);
        } else {
            timer.due_ = due;
            heap_.push_back(&timer);
            sift_up(heap_.size() - 1);
        }
    }

    void cancel(timed& timer) {
        if (timer.is_set()) take_out(timer);
    }

    std::size_t size() const noexcept { return heap_.size(); }

private:
    void take_out(timed& timer) {
        const std::size_t hole = std::exchange(timer.place_, timed::nowhere);
        timed* const last = heap_.back();
        heap_.pop_back();
        if (last == &timer) return;
        put(hole, last);
        sift_up(hole);
        sift_down(last->place_);
    }

    void put(std::size_t place, timed* timer) {
        heap_[place] = timer;
        timer->place_ = static_cast<std::uint32_t>(place);
    }

    void sift_up(std::size_t place) {
        timed* const moving = heap_[place];
        while (place > 0) {
            const std::size_t parent = (place - 1) / 2;
            if (heap_[parent]->due_ <= moving->due_) break;
            put(place, heap_[parent]);
            place = parent;
        }
        put(place, moving);
    }

    void sift_down(std::size_t place) {
        timed* const moving = heap_[place];
        for (;;) {
            std::size_t child = 2 * place + 1;
            if (child >= heap_.size()) break;
            if (child + 1 < heap_.size() && heap_[child + 1]->due_ < heap_[child]->due_) ++child;
            if (heap_[child]->due_ >= moving->due_) break;
            put(place, heap_[child]);
            place = child;
        }
        put(place, moving);
    }

    std::vector<timed*> heap_;
};

}  // namespace holdfast::engine
