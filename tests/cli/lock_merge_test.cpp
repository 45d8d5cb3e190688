// What several servers say of one lock, as one.
#include "cli/inspect/locks/lock_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::cli::lock_merge_test {
namespace {

using ::testing::ElementsAre;

lock_state seen(const std::vector<std::string>& holders, const std::vector<std::string>& waiters = {}) {
    lock_state lock(lock_ref(wire::lock_name("a"), wire::key_naming::tagged, "hf:"));
    for (const std::string& id : holders) lock.holders.push_back({{.id = id}});
    for (const std::string& id : waiters) lock.waiters.push_back({{.id = id}});
    return lock;
}

std::vector<std::string> told(const lock_state& lock) {
    std::vector<std::string> result;
    for (const lock_holder& one : lock.holders) result.push_back(one.id + " " + std::to_string(one.backing));
    return result;
}

TEST(LockMerge, HolderIsToldOnceWithTheNumberOfItsServers) {
    const lock_state all = merge({seen({"x"}), seen({"x"}), seen({})}, 3);
    EXPECT_THAT(told(all), ElementsAre("x 2"));
    EXPECT_TRUE(all.is_backed(all.holders.front()));
}

TEST(LockMerge, BestBackedHolderComesFirst) {
    const lock_state all = merge({seen({"late"}), seen({"x"}), seen({"x"})}, 3);
    EXPECT_THAT(told(all), ElementsAre("x 2", "late 1"));
    EXPECT_FALSE(all.is_backed(all.holders.back()));
}

TEST(LockMerge, SilentServersCountAgainstAMajority) {
    const lock_state all = merge({seen({"x"})}, 3);
    EXPECT_FALSE(all.is_backed(all.holders.front()));
    EXPECT_FALSE(merge({seen({"x"}), seen({"x"})}, 4).is_backed({{}, {}, 2}));  // half is not a majority
}

TEST(LockMerge, OfOneServerNothingChanges) {
    const lock_state all = merge({seen({"x", "y"}, {"z"})}, 1);
    EXPECT_THAT(told(all), ElementsAre("x 1", "y 1"));
    EXPECT_TRUE(all.is_backed(all.holders.back()));
    EXPECT_EQ(all.waiters.size(), 1U);
}

TEST(LockMerge, QueueIsThatOfTheFirstServerThenTheWaitersItDoesNotKnow) {
    const lock_state all = merge({seen({}, {"p", "q"}), seen({}, {"q", "r", "p"})}, 2);
    std::vector<std::string> queue;
    for (const lock_waiter& one : all.waiters) queue.push_back(one.id + " " + std::to_string(one.backing));
    EXPECT_THAT(queue, ElementsAre("p 2", "q 2", "r 1"));
}

TEST(LockMerge, ModeIsThatOfTheBestBacked) {
    lock_state behind = seen({"writer"});
    behind.kind = wire::lock_kind::read_write;
    behind.holders.front().mode = access::write;
    lock_state ahead = seen({"reader"});
    ahead.kind = wire::lock_kind::read_write;
    ahead.holders.front().mode = access::read;
    EXPECT_EQ(mode_of(merge({behind, ahead, ahead}, 3)), "read");
    EXPECT_EQ(mode_of(merge({behind, behind, ahead}, 3)), "write");
}

TEST(LockMerge, LastTokenIsTheLargest) {
    lock_state one = seen({});
    lock_state other = seen({});
    other.fence = 7;
    EXPECT_EQ(merge({one, other}, 2).fence, 7U);
    one.fence = 9;
    EXPECT_EQ(merge({other, one}, 2).fence, 9U);
}

TEST(LockMerge, WhatIsMovingSomewhereIsNeitherFreeNorIdleButAHolderThatIsSeenCounts) {
    lock_state moving = seen({});
    moving.is_moving = true;
    EXPECT_EQ(mode_of(merge({seen({}), moving}, 2)), "moving");
    EXPECT_FALSE(merge({seen({}), moving}, 2).is_idle());
    EXPECT_EQ(mode_of(merge({seen({"x"}), moving}, 2)), "exclusive");
}

TEST(LockMerge, OnlyMajoritiesAreKept) {
    std::vector<lock_state> locks{merge({seen({"late"}), seen({"x"}), seen({"x"})}, 3), merge({seen({"x"})}, 3)};
    keep_majorities(locks);
    EXPECT_THAT(told(locks[0]), ElementsAre("x 2"));
    EXPECT_TRUE(locks[1].is_free());
}

}  // namespace
}  // namespace holdfast::cli::lock_merge_test
