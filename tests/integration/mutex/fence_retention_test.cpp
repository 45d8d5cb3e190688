// How short a fencing mark may live: as long as the longest lease, and no shorter.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::fence_retention_test {
namespace {

using namespace std::chrono_literals;

// As short as can be.
client_options shortest() {
    return {.max_lease = 60s, .fence_retention = 60s};
}

errc refusal_of(const client_options& options) {
    try {
        client subject{"redis://127.0.0.1:1", options};
        return errc{};
    } catch (const error& refused) {
        return refused.condition();
    }
}

TEST(FenceRetention, IsAtLeastTheLongestLease) {
    EXPECT_EQ(refusal_of({.max_lease = 60s, .fence_retention = 59999ms}), errc::bad_option);
    EXPECT_EQ(refusal_of({.max_lease = 60s, .fence_retention = 60s}), errc{});
}

class FenceRetentionOfTheLongestLease : public ::testing::Test {
protected:
    // What is left of the mark and of the lock.
    std::int64_t mark_ms() { return server.call({"PTTL", "hf:{x}:fence"}).integer; }
    std::int64_t lock_ms() { return server.call({"PTTL", "hf:{x}"}).integer; }
    // As its expiry does while the hold is renewed.
    void end_mark() { ASSERT_EQ(server.call({"DEL", "hf:{x}:fence"}).integer, 1); }

    redis_server server{{}};
    client redis{server.url(), shortest()};
    client other{server.url(), shortest()};
};

// R45
TEST_F(FenceRetentionOfTheLongestLease, OutlivesALeaseThatIsNotRenewed) {
    mutex subject{redis, "x", {.lease = 60s, .renew = false}};
    const lease hold = subject.acquire();
    const std::int64_t lock = lock_ms();  // first: time goes by between the two
    EXPECT_LE(lock, 60'000);
    EXPECT_LE(mark_ms(), 60'000);
    EXPECT_GE(mark_ms() + 5'000, lock) << "set by one script";
}

// R45
TEST_F(FenceRetentionOfTheLongestLease, LetsAHoldOutliveItsMarkAndTokensGrow) {
    mutex first{redis, "x", {.lease = 60s}};
    mutex second{other, "x", {.lease = 60s}};
    lease hold = first.acquire();
    end_mark();
    EXPECT_FALSE(hold.renew());
    EXPECT_FALSE(second.try_acquire()) << "it excludes others";
    EXPECT_FALSE(hold.release()) << "it is released by its token";
    EXPECT_GT(second.acquire().token(), hold.token());
}

// R45
TEST_F(FenceRetentionOfTheLongestLease, LetsAWaiterBeServedByAHolderThatOutlivedItsMark) {
    mutex first{redis, "x", {.lease = 60s}};
    mutex second{other, "x", {.lease = 60s}};
    lease hold = first.acquire();
    end_mark();
    std::thread waiter([&] { EXPECT_GT(second.acquire().token(), hold.token()); });
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{x}:queue"}).integer == 1; }));
    EXPECT_FALSE(hold.release());
    waiter.join();
}

// R45
TEST_F(FenceRetentionOfTheLongestLease, LetsReadersAndWritersOutliveTheirMark) {
    shared_mutex catalog{redis, "x", {.lease = 60s}};
    lease reading = catalog.acquire_shared();
    end_mark();
    EXPECT_FALSE(reading.renew());
    lease writing = reading.try_upgrade();
    ASSERT_TRUE(writing);
    const auto before = writing.token();
    end_mark();
    EXPECT_FALSE(writing.renew());
    EXPECT_FALSE(writing.release());
    EXPECT_FALSE(reading.release());
    EXPECT_GT(catalog.acquire().token(), before);
}

}  // namespace
}  // namespace holdfast::testing::fence_retention_test
