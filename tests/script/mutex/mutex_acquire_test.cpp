// mutex/acquire without waiting: of a free lock, of the caller's own lock, of a lock that somebody else holds.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_acquire_test {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Le;

class MutexAcquire : public script_rows {};

TEST_F(MutexAcquire, TakesAFreeLock) {  // R01
    const redis_reply reply = acquire("me");
    expect_granted(reply);
    EXPECT_EQ(value(lock), "me");
    EXPECT_THAT(left(lock), AllOf(Gt(0), Le(minute)));
    EXPECT_EQ(everything().size(), 2U) << "a lock nobody waits for is two keys";
    expect_all_keys_expire();
}

TEST_F(MutexAcquire, ByTheHolderRefreshesAShorterLeaseAndKeepsTheToken) {  // R02
    const std::string token = hold("me");
    must({"PEXPIRE", lock, "1000"});
    const keyspace before = everything();
    EXPECT_THAT(acquire("me"), IsGranted(token));
    EXPECT_THAT(left(lock), AllOf(Gt(1000), Le(minute)));
    EXPECT_EQ(everything()[fence], before.at(fence)) << "re-entry is no new grant";
}

TEST_F(MutexAcquire, ByTheHolderNeverShortensItsLease) {  // R02, §4.3
    const std::string token = hold("me");
    must({"PEXPIRE", lock, text(hour)});
    const keyspace before = everything();
    EXPECT_THAT(acquire("me"), IsGranted(token));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexAcquire, ByTheHolderGivesALockWithoutExpiryOne) {  // §4.6
    const std::string token = hold("me");
    must({"PERSIST", lock});
    EXPECT_THAT(acquire("me"), IsGranted(token));
    EXPECT_THAT(left(lock), AllOf(Gt(0), Le(minute)));
}

TEST_F(MutexAcquire, OfAnothersLockChangesNothingAndSaysWhoAndHowLong) {  // R03
    hold("other");
    const keyspace before = everything();
    EXPECT_THAT(acquire("me"), IsRefused(0, AllOf(Gt(0), Le(minute)), "other"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexAcquire, OfALockThatNeverExpiresSaysMinusOne) {  // R03, R07: redis-py without a timeout
    must({"SET", lock, "python"});
    const keyspace before = everything();
    EXPECT_THAT(acquire("me"), IsRefused(0, -1, "python"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexAcquire, ExcludesAndIsExcludedByThePlainForm) {  // R07
    must({"SET", lock, "go-zero", "NX", "PX", text(minute)});
    EXPECT_EQ(code(acquire("me")), 0);
    lease_ends();
    hold("me");
    EXPECT_TRUE(must({"SET", lock, "go-zero", "NX", "PX", text(minute)}).is_nil());
}

TEST_F(MutexAcquire, TakesALockWhoseLeaseHasEnded) {  // R46
    const std::string earlier = hold("dead");
    lease_ends();
    EXPECT_GT(std::stoll(hold("me")), std::stoll(earlier));
    EXPECT_EQ(value(lock), "me");
}

TEST_F(MutexAcquire, ByTheHolderWhileOthersWaitLeavesTheQueueAlone) {  // R14
    const std::string token = hold("me");
    wait("next");
    const keyspace before = everything();
    EXPECT_THAT(acquire("me"), IsGranted(token));
    EXPECT_EQ(everything()[queue], before.at(queue));
    EXPECT_EQ(everything()[waiters], before.at(waiters));
}

// A mark can be gone while the hold is not: evicted, or the hold was renewed for longer than the retention.
TEST_F(MutexAcquire, ByAHolderWhoseMarkIsGoneNeverShortensItsLease) {  // R02, §4.3
    const std::string first = hold("me");
    must({"PEXPIRE", lock, text(hour)});
    must({"DEL", fence});
    const keyspace before = everything();
    const redis_reply reply = acquire("me");
    EXPECT_EQ(code(reply), 1);
    EXPECT_GT(std::stoll(reply.elements[1].text), std::stoll(first));
    EXPECT_EQ(everything()[lock], before.at(lock));
    EXPECT_EQ(value(fence), reply.elements[1].text);
    expect_all_keys_expire();
}

}  // namespace
}  // namespace holdfast::testing::mutex_acquire_test
