// The slot of a held lock is moving to another member of a Cluster: what needs few keys goes on, the rest comes later.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_moving_test {
namespace {

using namespace testing;
using ::testing::IsEmpty;

const std::string try_again = "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";

class EngineMoving : public read_write_engine_fixture {
protected:
    /// A hold with token 42.
    hold& holding() {
        subject.acquire(first, {.keys = keys, .options = {.lease = 30'000ms}}, now);
        id = send_one().arguments.at(0);
        receive(list({"1", "42"}));
        first.held->listen(life);
        return *first.held;
    }
    question release(hold& held) {
        subject.release(held, access::exclusive, &answer, now + 2s, now);
        return send_one();
    }
};

TEST_F(EngineMoving, AMutexIsFreedAloneAndItsQueueIsServedByTheReleaseThatFollows) {
    EXPECT_EQ(release(holding()).script, "mutex/release");
    receive(try_again);
    EXPECT_FALSE(answer.code) << "not done yet";
    const question alone = send_one();
    EXPECT_EQ(alone.script, "mutex/release_alone");
    EXPECT_EQ(alone.arguments.at(0), id);
    receive(list({"2"}));
    EXPECT_EQ(answer.code, errc{}) << "the caller need not wait for the end of the move";
    later(0ms);
    EXPECT_EQ(send_one().script, "mutex/release");
    receive(list({"0"}));
    later(60s);
    EXPECT_THAT(send(), IsEmpty());
}

TEST_F(EngineMoving, WhatReleaseAloneDidNotFindIsForTheReleaseInFullToTell) {
    release(holding());
    receive(try_again);
    send_one();
    receive(list({"0"}));
    EXPECT_FALSE(answer.code) << "where the slot is moving to for the second time, nothing may be there yet";
    EXPECT_EQ(send_one().script, "mutex/release");
    receive(list({"1", "0"}));
    EXPECT_EQ(answer.code, errc{});
}

// A copy of its request may still be on the way over the link that broke: whatever the server has of it goes.
TEST_F(EngineMoving, AMutexIsFreedAloneAlsoWhereWhatTheServerHasOfItIsUncertain) {
    subject.acquire(first, {.keys = keys, .options = {.lease = 30'000ms}}, now);
    send_one();
    break_link();
    send_one();
    receive(list({"1", "42"}));
    ASSERT_NE(first.held, nullptr);
    release(*first.held);
    receive(try_again);
    EXPECT_EQ(send_one().script, "mutex/release_alone");
    receive(list({"2"}));
    EXPECT_EQ(answer.code, errc{});
}

TEST_F(EngineMoving, AWaiterLeavesTheQueueInFull) {
    subject.acquire(first, {.keys = keys, .options = {.lease = 30'000ms}, .limit = {waiting::in_queue, now + 1h}}, now);
    send_one();
    receive(list({"2", "900", "other", "77", "0", "41"}));
    subject.cancel(first, errc::cancelled, now);
    EXPECT_EQ(send_one().script, "mutex/release");
    receive(try_again);
    EXPECT_THAT(send(), IsEmpty()) << "again later";
    later(10s);
    EXPECT_EQ(send_one().script, "mutex/release");
}

TEST_F(EngineMoving, AReleaseAloneThatIsRefusedIsFollowedByTheReleaseInFull) {
    release(holding());
    receive(try_again);
    send_one();
    receive(no_replicas);
    EXPECT_EQ(send_one().script, "mutex/release");
    receive(list({"1", "0"}));
    EXPECT_EQ(answer.code, errc{});
}

TEST_F(EngineMoving, AReleaseAloneWhoseAnswerIsLostIsFollowedByTheReleaseInFull) {
    release(holding());
    receive(try_again);
    send_one();
    break_link();
    EXPECT_EQ(send_one().script, "mutex/release");
    receive(list({"0"}));
    EXPECT_EQ(answer.code, errc{}) << "it may have run";
}

TEST_F(EngineMoving, AReadWriteLockIsRenewedWithTheKeysThatAreThere) {
    hold& held = reading();
    later(10s);
    EXPECT_EQ(send_one().script, "rw/renew");
    receive(try_again);
    EXPECT_EQ(send_one().script, "rw/renew_alone");
    receive(list({"1", "r", "42"}));
    later(15s);
    EXPECT_FALSE(life->lost);
    EXPECT_EQ(held.token(), 42U);
    EXPECT_EQ(send_one().script, "rw/renew") << "the next one is asked for in full";
}

TEST_F(EngineMoving, AReleaseIsNotAnsweredByTheRenewalAloneThatItOvertook) {
    hold& held = reading();
    later(10s);
    send_one();
    receive(try_again);
    EXPECT_EQ(send_one().script, "rw/renew_alone");
    subject.release(held, access::shared, &answer, now + 2s, now);
    expect_question(send_one(), "rw/release", "42");
    receive(list({"1", "r", "42"}));
    EXPECT_FALSE(answer.code);
    receive(list({"1", "0", "0"}));
    EXPECT_EQ(answer.code, errc{});
}

TEST_F(EngineMoving, ARenewalThatIsUnclearAloneIsAskedForInFull) {
    reading();
    later(10s);
    EXPECT_EQ(send_one().script, "rw/renew");
    receive(try_again);
    EXPECT_EQ(send_one().script, "rw/renew_alone");
    receive(list({"3"}));
    EXPECT_EQ(send_one().script, "rw/renew");
    receive(list({"1", "r", "42"}));
    later(20s);
    EXPECT_FALSE(life->lost);
}

TEST_F(EngineMoving, ARenewalThatIsNotPossibleNowIsAskedForAgainSoon) {
    reading();
    later(10s);
    send_one();
    receive(try_again);
    send_one();
    receive(list({"3"}));
    server.fail_waiting(errc::moving, now);
    EXPECT_FALSE(life->lost);
    EXPECT_THAT(send(), IsEmpty());
    later(3s);
    EXPECT_EQ(send_one().script, "rw/renew");
    receive(try_again);
    EXPECT_EQ(send_one().script, "rw/renew_alone") << "it may be plain by now";
}

}  // namespace
}  // namespace holdfast::engine::engine_moving_test
