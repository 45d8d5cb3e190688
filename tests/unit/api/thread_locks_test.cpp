#include "api/runtime/thread_locks.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace holdfast::api::thread_locks_test {
namespace {

using engine::access;

lock_count holding(std::size_t levels) {
    const auto made = std::make_shared<locked_levels>();
    made->of_engine = levels;
    return made;
}

TEST(ThreadLocks, CountsTheLevelsOfEachThreadByKind) {
    thread_locks subject;
    const lock_count mine = holding(3);
    subject.add(7, access::exclusive, mine);
    subject.add(7, access::exclusive, mine);
    subject.add(7, access::shared, mine);
    std::thread([&] { subject.add(8, access::shared, holding(1)); }).join();
    subject.remove(access::exclusive);
    const auto all = subject.take_all();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].owner, this_thread_as_owner());
    EXPECT_EQ(all[0].hold, 7U);
    EXPECT_EQ(all[0].exclusive, 1U);
    EXPECT_EQ(all[0].shared, 1U);
    EXPECT_NE(all[1].owner, this_thread_as_owner());
    EXPECT_EQ(all[1].shared, 1U);
    EXPECT_TRUE(subject.take_all().empty());
}

TEST(ThreadLocks, AnotherHoldOfTheThreadReplacesTheOneThatWasUnlockedElsewhere) {
    thread_locks subject;
    const lock_count mine = holding(1);
    subject.add(7, access::exclusive, mine);
    subject.add(7, access::shared, mine);
    subject.add(9, access::exclusive, mine);
    const auto all = subject.take_all();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].hold, 9U);
    EXPECT_EQ(all[0].exclusive, 1U);
    EXPECT_EQ(all[0].shared, 0U);
}

TEST(ThreadLocks, UnlockingWhatWasNotLockedHereChangesNothing) {
    thread_locks subject;
    subject.remove(access::exclusive);
    subject.add(7, access::shared, holding(1));
    subject.remove(access::exclusive);
    EXPECT_EQ(subject.take_all().size(), 1U);
}

// An object may live as long as the program: threads that lock here and unlock elsewhere, or end, must not add up.
TEST(ThreadLocks, ThreadsThatHoldNothingAnyMoreAreForgotten) {
    thread_locks subject;
    const lock_count ended = holding(1);
    std::thread([&] { subject.add(7, access::exclusive, ended); }).join();
    ended->of_engine = 0;
    subject.add(8, access::exclusive, holding(1));
    const auto all = subject.take_all();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].hold, 8U);
}

}  // namespace
}  // namespace holdfast::api::thread_locks_test
