// mutex/renew: a full lease again, for the holder only. It gets only the lock's own key.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_renew_test {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Le;

class MutexRenew : public script_rows {};

TEST_F(MutexRenew, MakesTheLeaseFullAgain) {
    hold("me");
    must({"PEXPIRE", lock, "1000"});
    const keyspace before = everything();
    EXPECT_EQ(code(renew("me", minute)), 1);
    EXPECT_THAT(left(lock), AllOf(Gt(1000), Le(minute)));
    EXPECT_EQ(everything()[fence], before.at(fence));
    EXPECT_EQ(everything()[lock].value, "me");
}

TEST_F(MutexRenew, NeverShortens) {  // R02, §4.3
    hold("me");
    const keyspace before = everything();
    EXPECT_EQ(code(renew("me", 1000)), 1);
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRenew, GivesALockWithoutExpiryOne) {  // §4.6
    hold("me");
    must({"PERSIST", lock});
    EXPECT_EQ(code(renew("me", minute)), 1);
    EXPECT_THAT(left(lock), AllOf(Gt(0), Le(minute)));
}

TEST_F(MutexRenew, NeverRevivesAHoldThatIsGone) {  // R06, §4.5
    hold("me");
    lease_ends();
    const keyspace before = everything();
    const redis_reply reply = renew("me", minute);
    EXPECT_EQ(code(reply), 0);
    EXPECT_EQ(reply.elements.size(), 1U);
    EXPECT_EQ(everything(), before);
}

// R57
TEST_F(MutexRenew, WithNoMoreThanTheDelayLeftTheHoldHasExpired) {
    hold("me");
    must({"PEXPIRE", lock, "20000"});
    const keyspace before = everything();
    const redis_reply reply = run("mutex/renew", {lock}, {"me", text(minute), "20000"});
    EXPECT_EQ(code(reply), 0);
    EXPECT_EQ(reply.elements.size(), 1U);
    EXPECT_EQ(everything(), before);
    EXPECT_LE(left(lock), 20000);
}

TEST_F(MutexRenew, WithMoreThanTheDelayLeftTheLeaseIsFullAgain) {
    hold("me");
    must({"PEXPIRE", lock, "30000"});
    EXPECT_EQ(code(run("mutex/renew", {lock}, {"me", text(minute), "1000"})), 1);
    EXPECT_THAT(left(lock), AllOf(Gt(30000), Le(minute)));
}

TEST_F(MutexRenew, OfALockWithoutExpiryTheDelayDoesNotMatter) {
    hold("me");
    must({"PERSIST", lock});
    EXPECT_EQ(code(run("mutex/renew", {lock}, {"me", text(minute), "1000"})), 1);
    EXPECT_THAT(left(lock), AllOf(Gt(0), Le(minute)));
}

TEST_F(MutexRenew, OfAnothersLockChangesNothing) {  // R06
    hold("me");
    lease_ends();
    hold("next");
    const keyspace before = everything();
    EXPECT_THAT(renew("me", hour), IsRefused(-1, AllOf(Gt(0), Le(minute)), "next"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRenew, OfAForeignLockWithoutExpiryChangesNothing) {  // R07
    must({"SET", lock, "python"});
    const keyspace before = everything();
    EXPECT_THAT(renew("me", hour), IsRefused(-1, -1, "python"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRenew, OfAKeyOfAnotherTypeIsAnError) {  // §4.9
    must({"RPUSH", lock, "x"});
    const keyspace before = everything();
    EXPECT_THAT(renew("me", hour), IsError("WRONGTYPE"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRenew, WorksOnAFullServer) {  // §4.9
    hold("me");
    must({"PEXPIRE", lock, "1000"});
    server_is_full();
    EXPECT_EQ(code(renew("me", minute)), 1);
    EXPECT_GT(left(lock), 1000);
}

}  // namespace
}  // namespace holdfast::testing::mutex_renew_test
