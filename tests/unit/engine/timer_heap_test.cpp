// The heap of timers, held against the simplest thing that could be right.
#include "engine/timer_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>

namespace holdfast::engine::timer_heap_test {
namespace {

using namespace std::chrono_literals;

TEST(TimerHeap, AnEmptyOneIsNeverDue) {
    timer_heap heap;
    EXPECT_EQ(heap.earliest(), never);
    EXPECT_EQ(heap.take_due(never), nullptr);
}

TEST(TimerHeap, TakesWhatIsDueAndNothingBefore) {
    timer_heap heap;
    timed early;
    timed late;
    heap.set(late, instant(20ms));
    heap.set(early, instant(10ms));
    EXPECT_EQ(heap.earliest(), instant(10ms));
    EXPECT_EQ(heap.take_due(instant(10ms) - 1ns), nullptr);
    EXPECT_EQ(heap.take_due(instant(10ms)), &early);
    EXPECT_FALSE(early.is_set());
    EXPECT_EQ(heap.take_due(instant(10ms)), nullptr);
    EXPECT_EQ(heap.take_due(instant(1s)), &late);
    EXPECT_EQ(heap.size(), 0U);
}

TEST(TimerHeap, CancellingTwiceIsHarmless) {
    timer_heap heap;
    timed timer;
    heap.cancel(timer);
    heap.set(timer, instant(1ms));
    heap.cancel(timer);
    heap.cancel(timer);
    EXPECT_EQ(heap.earliest(), never);
}

class model {
public:
    void step(std::mt19937_64& random) {
        timed& timer = timers_[random() % timers_.size()];
        switch (random() % 8) {
            case 0:
                return heap_.cancel(timer);
            case 1:
                return take(instant(std::chrono::nanoseconds(random() % 1000)));
            default:
                return heap_.set(timer, instant(std::chrono::nanoseconds(random() % 1000)));
        }
    }

    // What the timers themselves say is the model: the heap only has to find the first of them.
    void check() const {
        instant earliest = never;
        std::size_t set = 0;
        for (const timed& timer : timers_) {
            if (!timer.is_set()) continue;
            earliest = std::min(earliest, timer.due());
            ++set;
        }
        ASSERT_EQ(heap_.earliest(), earliest);
        ASSERT_EQ(heap_.size(), set);
    }

private:
    void take(instant now) {
        const instant earliest = heap_.earliest();
        timed* const due = heap_.take_due(now);
        ASSERT_EQ(due != nullptr, earliest <= now);
        if (due != nullptr) {
            ASSERT_EQ(due->due(), earliest);
            ASSERT_FALSE(due->is_set());
        }
    }

    std::array<timed, 60> timers_;
    timer_heap heap_;
};

TEST(TimerHeap, AlwaysKnowsTheFirstWhateverIsSetMovedAndCancelled) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random(seed);
        model subject;
        for (int i = 0; i < 2000 && !::testing::Test::HasFatalFailure(); ++i) {
            subject.step(random);
            subject.check();
        }
    }
}

}  // namespace
}  // namespace holdfast::engine::timer_heap_test
