// mutex/release: which grant it ends, and what its answer says.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_release_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::Le;

class MutexRelease : public script_rows {};

TEST_F(MutexRelease, ByTheHolderFreesTheLock) {  // R04
    const std::string token = hold("me");
    const redis_reply reply = release("me", token);
    ASSERT_EQ(reply.elements.size(), 2U);
    EXPECT_EQ(reply.elements[0].integer, 1);
    EXPECT_EQ(reply.elements[1].integer, 0) << "nobody waits";
    EXPECT_EQ(everything().count(lock), 0U);
}

TEST_F(MutexRelease, RepeatedAnswersAndChangesNothing) {  // R05
    const std::string token = hold("me");
    release("me", token);
    const keyspace before = everything();
    const redis_reply reply = release("me", token);
    EXPECT_EQ(code(reply), 0);
    EXPECT_EQ(reply.elements.size(), 1U);
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRelease, RepeatedAfterAHandOverChangesNothing) {  // R05, R06
    const std::string token = hold("me");
    wait("next");
    wait("after");
    const listener ear = listens("next");
    release("me", token);
    const keyspace before = everything();
    EXPECT_THAT(release("me", token), IsRefused(-1, AllOf(Gt(0), Le(minute)), "next"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRelease, OfAnothersLockChangesNothing) {  // R04, R06: the T1..T5 race
    const std::string mine = hold("me");
    lease_ends();
    hold("next");
    const keyspace before = everything();
    EXPECT_THAT(release("me", mine), IsRefused(-1, AllOf(Gt(0), Le(minute)), "next"));
    EXPECT_THAT(release("me", "0"), IsRefused(-1, AllOf(Gt(0), Le(minute)), "next"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRelease, OfAForeignLockChangesNothing) {  // R07
    must({"SET", lock, "python"});
    const keyspace before = everything();
    EXPECT_THAT(release("me", "1"), IsRefused(-1, -1, "python"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRelease, OfALockThatNobodyHoldsChangesNothing) {  // R04
    EXPECT_EQ(code(release("me", "1")), 0);
    EXPECT_EQ(code(release("me", "0")), 0);
    EXPECT_TRUE(everything().empty());
}

TEST_F(MutexRelease, OfAnotherGrantOfTheSameIdChangesNothing) {  // §4.3: an old copy that runs late
    const std::string first = hold("me");
    lease_ends();
    const std::string second = hold("me");
    const keyspace before = everything();
    EXPECT_THAT(release("me", first), IsRefused(-1, AllOf(Gt(0), Le(minute)), "me"));
    EXPECT_EQ(everything(), before);
    EXPECT_EQ(code(release("me", second)), 1);
}

TEST_F(MutexRelease, WithTokenZeroEndsAnyGrant) {  // R13: giving up an acquisition
    hold("me");
    EXPECT_EQ(code(release("me", "0")), 1);
    EXPECT_EQ(everything().count(lock), 0U);
}

TEST_F(MutexRelease, WithTokenZeroLeavesTheQueue) {  // R13
    hold("holder");
    wait("me");
    wait("next");
    const keyspace before = everything();
    EXPECT_EQ(code(release("me", "0")), -1);
    EXPECT_THAT(queued_ids(), ElementsAre("next"));
    EXPECT_TRUE(must({"HGET", waiters, "me"}).is_nil());
    EXPECT_EQ(everything()[lock], before.at(lock));
    EXPECT_EQ(everything()[fence], before.at(fence));
}

TEST_F(MutexRelease, OfTheLastWaiterLeavesNothing) {  // §4.6
    hold("holder");
    wait("me");
    release("me", "0");
    EXPECT_EQ(everything().size(), 2U);
}

TEST_F(MutexRelease, WithATokenKeepsThePositionInTheQueue) {  // §6: only giving up leaves it
    const std::string first = hold("me");
    lease_ends();
    hold("other");
    wait("me");
    const keyspace before = everything();
    EXPECT_EQ(code(release("me", first)), -1);
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRelease, WhoseMarkIsGoneGoesByTheIdAlone) {  // renewed for longer than the retention
    const std::string token = hold("me");
    must({"DEL", fence});
    EXPECT_EQ(code(release("me", token)), 1);
    EXPECT_TRUE(everything().empty());
}

TEST_F(MutexRelease, WhoseMarkIsNoTokenGoesByTheIdAlone) {
    const std::string token = hold("me");
    must({"SET", fence, "abc"});
    EXPECT_EQ(code(release("me", token)), 1);
    EXPECT_EQ(everything().count(lock), 0U);
}

TEST_F(MutexRelease, OfALockWithoutExpiryFreesIt) {
    const std::string token = hold("me");
    must({"PERSIST", lock});
    EXPECT_EQ(code(release("me", token)), 1);
    EXPECT_EQ(everything().count(lock), 0U);
}

}  // namespace
}  // namespace holdfast::testing::mutex_release_test
