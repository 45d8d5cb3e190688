// The explorer itself, on worlds that are small enough to count by hand.

#include "explore/explorer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace holdfast::sim::explore::explorer_test {
namespace {

// Two processes add one to a number, in one step or in two: read, then write.
class counter : public world {
public:
    explicit counter(std::size_t steps) : steps_(steps) {}

    std::size_t choices() override {
        enabled_.clear();
        for (std::size_t i = 0; i < 2; ++i) {
            if (done_[i] < steps_) enabled_.push_back(i);
        }
        return enabled_.size();
    }
    std::string describe(std::size_t choice) const override { return "process " + std::to_string(enabled_[choice]); }
    void take(std::size_t choice) override {
        const std::size_t who = enabled_[choice];
        if (done_[who]++ == 0) read_[who] = number_;
        if (done_[who] == steps_) number_ = read_[who] + 1;
    }
    std::uint64_t state() override {
        std::uint64_t all = number_;
        for (std::size_t i = 0; i < 2; ++i) all = all * 100 + done_[i] * 10 + read_[i];
        return all;
    }
    void end() override {
        if (number_ != 2) verdict_ = "an update is lost";
    }
    const std::string& verdict() const override { return verdict_; }

private:
    const std::size_t steps_;
    std::vector<std::size_t> enabled_;
    std::array<std::size_t, 2> done_{};
    std::array<std::uint64_t, 2> read_{};
    std::uint64_t number_ = 0;
    std::string verdict_;
};

world_maker counters(std::size_t steps) {
    return [steps] { return std::make_unique<counter>(steps); };
}

TEST(Explorer, TriesEveryOrder) {
    const findings found = explore(counters(1));
    EXPECT_TRUE(found.is_complete);
    EXPECT_EQ(found.verdict, "");
    EXPECT_EQ(found.schedules, 2);
    EXPECT_EQ(found.states, 1);  // only the first state has two choices
}

TEST(Explorer, FindsALostUpdate) {
    const findings found = explore(counters(2));
    EXPECT_EQ(found.verdict, "an update is lost");
    EXPECT_FALSE(found.is_complete);
    EXPECT_EQ(found.violating_events, 4);
}

TEST(Explorer, RepeatsTheScheduleOfAViolation) {
    const findings found = explore(counters(2));
    std::vector<std::string> told;
    const std::string verdict = replay(counters(2), found.violating, [&](std::string line) { told.push_back(line); });
    EXPECT_EQ(verdict, found.verdict);
    EXPECT_EQ(told.size(), found.violating_events);
}

TEST(Explorer, EndsAtItsLimit) {
    const findings found = explore(counters(1), {.schedules = 1});
    EXPECT_EQ(found.schedules, 1);
    EXPECT_FALSE(found.is_complete);
}

// Two processes that do not touch the same thing: what they have done counts, not the order.
class strangers final : public counter {
public:
    strangers() : counter(2) {}
    void end() override {}
    std::uint64_t state() override {
        return 0;  // every state looks the same
    }
};

TEST(Explorer, DoesNotExploreAStateTwice) {
    const findings found = explore([] { return std::make_unique<strangers>(); });
    EXPECT_EQ(found.states, 1);
    EXPECT_EQ(found.schedules, 2);
    EXPECT_EQ(found.ended, 0);
}

}  // namespace
}  // namespace holdfast::sim::explore::explorer_test
