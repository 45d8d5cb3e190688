// mutex/renew_block: the lease is full again, and the fence covers the tokens that the caller may use.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_renew_block_test {
namespace {

class MutexRenewBlock : public script_rows {
protected:
    redis_reply renew_block(const std::string& id, const std::string& wish = "0", std::int64_t lease = minute) {
        return run("mutex/renew_block", {lock, queue, fence}, {id, text(lease), wish, text(hour)});
    }
    std::int64_t mark() { return std::stoll(value(fence)); }

    // {1, '', '', '', ceiling, waiters}; the ceiling is the fence.
    void expect_renewed(const redis_reply& reply, std::int64_t waiters_now) {
        ASSERT_EQ(reply.elements.size(), 6U);
        EXPECT_EQ(reply.elements[0].integer, 1);
        EXPECT_EQ(reply.elements[4].text, value(fence));
        EXPECT_EQ(reply.elements[5].integer, waiters_now);
    }
};

TEST_F(MutexRenewBlock, TellsTheClockAsCeilingAndHowManyWait) {  // R50, R52
    hold("keeper");
    const std::int64_t before = server_us();
    expect_renewed(renew_block("keeper"), 0);
    EXPECT_GE(mark(), before);
    EXPECT_LE(mark(), server_us());
    wait("a");
    wait("b");
    expect_renewed(renew_block("keeper"), 2);
    expect_all_keys_expire();
}

TEST_F(MutexRenewBlock, NeverLowersTheFence) {  // R52
    hold("keeper");
    const std::int64_t ahead = server_us() + minute * 1000;
    must({"SET", fence, text(ahead), "PX", text(hour)});
    expect_renewed(renew_block("keeper"), 0);
    EXPECT_EQ(mark(), ahead);
    expect_renewed(renew_block("keeper", text(ahead - 5)), 0);
    EXPECT_EQ(mark(), ahead);
    EXPECT_GT(left(fence), hour) << "the fence is kept from its own time on";
}

TEST_F(MutexRenewBlock, GrantsTheWishOnlyWhereTheClockIsBehindTheFence) {  // R52
    hold("keeper");
    const std::int64_t far = server_us() + minute * 1000;
    expect_renewed(renew_block("keeper", text(far)), 0);
    EXPECT_LE(mark(), server_us()) << "a client does not carry the tokens away";
    must({"SET", fence, text(far), "PX", text(hour)});
    expect_renewed(renew_block("keeper", text(far + 100)), 0);
    EXPECT_EQ(mark(), far + 100);
    must({"DEL", fence});
    expect_renewed(renew_block("keeper", text(far + 200)), 0);
    EXPECT_EQ(mark(), far + 200) << "nobody knows which tokens were used";
}

// R57
TEST_F(MutexRenewBlock, WithNoMoreThanTheDelayLeftTheHoldHasExpired) {
    hold("keeper");
    must({"PEXPIRE", lock, "20000"});
    const keyspace before = everything();
    const redis_reply late =
        run("mutex/renew_block", {lock, queue, fence}, {"keeper", text(minute), "0", text(hour), "20000"});
    ASSERT_EQ(late.elements.size(), 1U);
    EXPECT_EQ(code(late), 0);
    EXPECT_EQ(everything(), before);
    must({"PEXPIRE", lock, "30000"});
    expect_renewed(run("mutex/renew_block", {lock, queue, fence}, {"keeper", text(minute), "0", text(hour), "1000"}),
                   0);
    EXPECT_GT(left(lock), 30000);
}

TEST_F(MutexRenewBlock, MakesTheLeaseFullAgainAndNeverShortens) {
    hold("keeper");
    renew_block("keeper", "0", hour);
    EXPECT_GT(left(lock), minute);
    renew_block("keeper", "0", 1000);
    EXPECT_GT(left(lock), minute);
}

TEST_F(MutexRenewBlock, ChangesNothingOfOthers) {
    EXPECT_EQ(code(renew_block("keeper")), 0);
    EXPECT_TRUE(everything().empty());
    hold("other");
    const keyspace before = everything();
    EXPECT_THAT(renew_block("keeper"), IsRefused(-1, ::testing::Gt(0), "other"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexRenewBlock, WorksOnAFullServer) {
    hold("keeper");
    server_is_full();
    expect_renewed(renew_block("keeper", "0", hour), 0);
    EXPECT_GT(left(lock), minute);
}

TEST_F(MutexRenewBlock, OfKeysOfAnotherTypeIsAnErrorAndChangesNothing) {
    for (const std::string& key : {lock, queue, fence}) {
        must({"FLUSHALL"});
        hold("keeper");
        must({"DEL", key});
        must({"SADD", key, "x"});
        must({"PEXPIRE", key, text(hour)});
        const keyspace before = everything();
        EXPECT_THAT(renew_block("keeper"), IsError("WRONGTYPE"));
        EXPECT_EQ(everything(), before);
    }
}

}  // namespace
}  // namespace holdfast::testing::mutex_renew_block_test
