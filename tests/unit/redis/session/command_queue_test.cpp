// The order of commands that are not written yet.
#include "redis/session/command_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/session/recorded_command.hpp"

namespace holdfast::redis::command_queue_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::event_log;
using ::testing::IsEmpty;
using testing::recorded_command;

class CommandQueue : public ::testing::Test {
protected:
    std::vector<command*> order() const { return {line.begin(), line.end()}; }

    event_log log;
    recorded_command a{log, "a"};
    recorded_command b{log, "b"};
    recorded_command c{log, "c"};
    recorded_command d{log, "d"};
    command_queue line;
};

TEST_F(CommandQueue, WhatIsSentAgainGoesBeforeTheNewInItsOwnOrder) {
    line.add(a);
    line.add_before_new(b);
    line.add_before_new(c);
    line.add(d);
    EXPECT_THAT(order(), ElementsAre(&b, &c, &a, &d));
}

TEST_F(CommandQueue, TakingOneOutKeepsTheOrderOfTheOthers) {
    line.add(a);
    line.add_before_new(b);
    EXPECT_TRUE(line.remove(b));
    EXPECT_FALSE(line.remove(b)) << "not here any more";
    EXPECT_FALSE(line.contains(b));
    line.add_before_new(c);
    line.add_before_new(d);
    EXPECT_THAT(order(), ElementsAre(&c, &d, &a));
}

TEST_F(CommandQueue, OnlyWhatIsDueIsTakenAndTheOrderStays) {
    const instant now{1s};
    line.add(a);
    line.add_before_new(b);
    b.give_up_at(now);
    EXPECT_EQ(line.earliest_deadline(), never) << "the deadline counts that it came with";
    line.clear();
    line.add(a);
    line.add_before_new(b);
    EXPECT_EQ(line.earliest_deadline(), now);
    EXPECT_THAT(line.take_due(now - 1ns), IsEmpty());
    EXPECT_THAT(line.take_due(now), ElementsAre(&b));
    EXPECT_EQ(line.earliest_deadline(), never);
    line.add_before_new(c);
    line.add_before_new(d);
    EXPECT_THAT(order(), ElementsAre(&c, &d, &a));
}

TEST_F(CommandQueue, TakingAllLeavesNothing) {
    line.add_before_new(a);
    line.add(b);
    EXPECT_THAT(line.take_all(), ElementsAre(&a, &b));
    EXPECT_TRUE(line.empty());
    line.add(c);
    line.add_before_new(d);
    EXPECT_THAT(order(), ElementsAre(&d, &c));
}

}  // namespace
}  // namespace holdfast::redis::command_queue_test
