// The delay of a mutex (R57): after a hold has expired, nobody acquires the lock for a while; after a release, at once.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <chrono>
#include <memory>

#include "integration/refusal.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::delay_test {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds brief = 300ms;
constexpr milliseconds delay = 900ms;
const std::string key = "hf:{stock}";

class Delay : public ::testing::Test {
protected:
    std::int64_t left() { return server.call({"PTTL", key}).integer; }

    redis_server server;
    client subject{server.url() + "?timeout=5s"};
    client other{server.url() + "?timeout=5s"};
    mutex lock{subject, "stock", {.lease = brief, .renew = false, .delay = delay}};
    mutex rival{other, "stock", {.lease = brief, .delay = delay}};
};

TEST_F(Delay, AfterAHoldHasExpiredNobodyAcquiresTheLockBeforeItIsOver) {  // R57
    const auto before = std::chrono::steady_clock::now();
    lease held = lock.acquire();
    EXPECT_LE(held.validity(), brief) << "the holder believes in its lease only";
    lease next = rival.acquire();
    EXPECT_GE(std::chrono::steady_clock::now() - before, brief + delay);
    EXPECT_TRUE(held.lost().stop_requested());
    EXPECT_GT(next.token(), held.token());
}

TEST_F(Delay, DoesNotFollowARelease) {  // R57
    mutex longer{subject, "stock", {.lease = 20s, .delay = 40s}};
    lease held = longer.acquire();
    EXPECT_GT(left(), 20'000);
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(rival.try_acquire()) << "free at once";
}

TEST_F(Delay, AHolderThatWasToldOfItsLossFreesTheLockByReleasingIt) {  // R57
    mutex patient{subject, "stock", {.lease = brief, .renew = false, .delay = 50s}};
    lease held = patient.acquire();
    ASSERT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
    EXPECT_EQ(server.call({"EXISTS", key}).integer, 1);
    EXPECT_FALSE(rival.try_acquire());
    EXPECT_EQ(held.release(), errc::lost);
    EXPECT_TRUE(eventually([&] { return static_cast<bool>(rival.try_acquire()); }));
}

TEST_F(Delay, ARenewedHoldKeepsBoth) {
    mutex renewed{subject, "stock", {.lease = 2s, .delay = 30s}};
    lease held = renewed.acquire();
    server.call({"PEXPIRE", key, "31000"});  // as if time had passed
    EXPECT_TRUE(eventually([&] { return left() > 31'000; }));
    EXPECT_FALSE(held.release());
}

TEST_F(Delay, FollowsACrash) {  // R46, R57
    child_process program{HOLDFAST_LEAVER, {.arguments = {server.url(), "crash"}}};
    ASSERT_EQ(program.wait(), exit_result{.status = 0});
    EXPECT_GT(left(), 20'000);
    EXPECT_FALSE(rival.try_acquire());
}

TEST_F(Delay, TogetherWithTheLeaseIsAtMostTheClientsMaxLease) {
    const auto make = [&](milliseconds lease, milliseconds wanted) {
        return condition_of([&] { mutex{subject, "stock", {.lease = lease, .delay = wanted}}; });
    };
    EXPECT_EQ(make(30s, 31s), errc::bad_option);
    EXPECT_EQ(make(30s, 61s), errc::bad_option);
    EXPECT_EQ(make(30s, -1ms), errc::bad_option);
    EXPECT_NO_THROW((mutex{subject, "stock", {.lease = 30s, .delay = 30s}}));
    mutex half{subject, "stock", {.lease = 10s, .delay = 30s}};
    EXPECT_EQ(condition_of([&] { half.acquire({.lease = 31s}); }), errc::bad_option);
}

TEST_F(Delay, HoldsWithKeptLocksToo) {  // R50, R57
    mutex kept{subject, "stock", {.lease = 5s, .keep = 10s, .delay = 30s}};
    for (int i = 0; i < 100; ++i) {
        lease held = kept.acquire();
        EXPECT_LE(held.validity(), 5s);
    }
    EXPECT_TRUE(rival.try_acquire_for(60s)) << "given back, not expired";
}

}  // namespace
}  // namespace holdfast::testing::delay_test
