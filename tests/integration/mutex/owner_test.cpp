// Owners, several locks at once, and what an operator sees: metrics, log, client card, who holds a refused lock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <mutex>
#include <thread>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::owner_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class Owners : public ::testing::Test {
protected:
    bool free(const std::string& key) { return server.call({"EXISTS", key}).integer == 0; }

    redis_server server;
    client subject{server.url()};
    mutex stock{subject, "stock"};
    mutex prices{subject, "prices"};
};

// R08
TEST_F(Owners, AnOwnerReEntersAndTheLastReleaseFrees) {
    const owner job;
    lease outer = stock.acquire({.owner = job});
    server.reset_stats();
    lease inner = stock.try_acquire({.owner = job});
    ASSERT_TRUE(inner);
    EXPECT_EQ(inner.token(), outer.token()) << "re-entry keeps the token";
    EXPECT_EQ(inner.id(), outer.id());
    EXPECT_FALSE(outer.release());
    EXPECT_EQ(server.command_calls("evalsha"), 0) << "inner acquires and releases cost no command";
    EXPECT_FALSE(free("hf:{stock}"));
    EXPECT_FALSE(inner.release());
    EXPECT_TRUE(free("hf:{stock}"));
}

TEST_F(Owners, AnotherOwnerIsRefused) {
    const lease held = stock.acquire({.owner = owner()});
    EXPECT_FALSE(stock.try_acquire({.owner = owner()}));
    EXPECT_FALSE(stock.try_acquire());
    EXPECT_FALSE(stock.try_lock());
}

TEST_F(Owners, ReEnteringTooOftenIsRefused) {
    client shallow{server.url(), {.max_depth = 3}};
    mutex lock{shallow, "deep"};
    const owner job;
    std::vector<lease> levels;
    for (int i = 0; i < 3; ++i) levels.push_back(lock.acquire({.owner = job}));
    try {
        lock.acquire({.owner = job});
        FAIL();
    } catch (const error& refused) {
        EXPECT_EQ(refused.condition(), errc::too_deep);
    }
}

TEST_F(Owners, ReEnteringALostHoldIsRefusedUntilItIsReleased) {
    mutex brief{subject, "brief", {.lease = 150ms}};
    const owner job;
    lease held = brief.acquire({.owner = job});
    server.call({"DEL", "hf:{brief}"});
    ASSERT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
    try {
        brief.acquire({.owner = job});
        FAIL();
    } catch (const error& refused) {
        EXPECT_EQ(refused.condition(), errc::lost);
    }
    EXPECT_EQ(held.release(), errc::lost);
    EXPECT_TRUE(brief.try_acquire({.owner = job}));
}

// R03
TEST_F(Owners, ARefusalSaysWhoHoldsItAndForHowLong) {
    const lease held = stock.acquire({.lease = 20s});
    refusal why;
    EXPECT_FALSE(stock.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.code, errc::busy);
    EXPECT_EQ(why.holder, held.id());
    ASSERT_TRUE(why.holder_left);
    EXPECT_GT(*why.holder_left, 0ms);
    EXPECT_LE(*why.holder_left, 20s);
}

TEST_F(Owners, AThreadThatEndsHoldingIsRenewedNoLonger) {
    mutex brief{subject, "brief", {.lease = 200ms}};
    std::thread([&] { brief.lock(); }).join();
    EXPECT_TRUE(eventually([&] { return free("hf:{brief}"); }));
    EXPECT_TRUE(brief.try_lock());
    brief.unlock();
}

TEST_F(Owners, WaitersAreCounted) {
    lease held = stock.acquire();
    EXPECT_EQ(held.waiters(), 0U);
    std::thread waiting([&] { const lease later = stock.acquire(); });
    EXPECT_TRUE(eventually([&] { return held.waiters() == 1; }));
    held.release();
    waiting.join();
    EXPECT_THROW(held.waiters(), error);
}

TEST_F(Owners, LeasesLongerThanTheDeploymentAllowsAreRefused) {
    client strict{server.url(), {.max_lease = 5s}};
    EXPECT_THROW((mutex{strict, "x", {.lease = 6s}}), error);
    mutex fine{strict, "x", {.lease = 5s}};
    EXPECT_THROW(fine.acquire({.lease = 6s}), error);
}

TEST_F(Owners, LockAllTakesThemInOneOrderWhateverTheyAreNamedIn) {
    int together = 0;
    const auto work = [&](mutex& first, mutex& second) {
        for (int i = 0; i < 50; ++i) {
            const lock_all both{first, second};
            EXPECT_EQ(++together, 1);
            --together;
        }
    };
    std::thread one([&] { work(stock, prices); });
    std::thread two([&] { work(prices, stock); });
    one.join();
    two.join();
    subject.ping();  // behind the last releases, on the same link
    EXPECT_TRUE(free("hf:{stock}"));
    EXPECT_TRUE(free("hf:{prices}"));
}

TEST_F(Owners, LockAllKnowsEachLeaseAndTakesALockNamedTwiceOnce) {
    const lock_all all{prices, stock, prices};
    EXPECT_EQ(all.size(), 3U);
    EXPECT_EQ(server.call({"GET", "hf:{stock}"}).text, all[1].id());
    EXPECT_EQ(all[0].token(), all[2].token());
}

TEST_F(Owners, LockAllReleasesAllWhenOneCannotBeAcquired) {
    const lease other = stock.acquire();
    std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW((lock_all{acquire_options{.stop = stop.get_token()}, prices, stock}), error);
    EXPECT_TRUE(eventually([&] { return free("hf:{prices}"); }));
}

TEST_F(Owners, MetricsCountWhatHappened) {
    const auto counted = std::make_shared<metrics>();
    client watched{server.url(), {.metrics = counted}};
    mutex lock{watched, "counted", {.lease = 6s}};
    {
        const owner job;
        const lease outer = lock.acquire({.owner = job});
        const lease inner = lock.acquire({.owner = job});
        EXPECT_FALSE(lock.try_acquire());
        EXPECT_TRUE(eventually([&] { return counted->renewals >= 2; }));
    }
    lease lost = lock.acquire();
    server.call({"DEL", "hf:{counted}"});
    EXPECT_TRUE(eventually([&] { return counted->losses == 1; }));
    lost.release();
    EXPECT_EQ(counted->acquired, 2U);
    EXPECT_EQ(counted->reentered, 1U);
    EXPECT_EQ(counted->refused, 1U);
    EXPECT_EQ(counted->released, 2U);
    EXPECT_EQ(counted->links, 1U);
    EXPECT_EQ(counted->acquire_wait.read().count, 2U);
    EXPECT_GE(counted->hold_time.read().quantile(1.0), 50ms);
}

TEST_F(Owners, TheLogHearsOfLossesAndLinks) {
    std::mutex guard;
    std::string heard;
    client watched{server.url(), {.log = [&](log_level, const std::string& text) {
                       const std::lock_guard lock(guard);
                       heard += text + "\n";
                   }}};
    mutex lock{watched, "logged", {.lease = 150ms}};
    const lease held = lock.acquire();
    server.call({"DEL", "hf:{logged}"});
    EXPECT_TRUE(eventually([&] {
        const std::lock_guard lock_(guard);
        return heard.find("hf:{logged} is lost") != std::string::npos;
    }));
    const std::lock_guard lock_(guard);
    EXPECT_THAT(heard, HasSubstr("connected to redis://127.0.0.1"));
}

TEST_F(Owners, TheClientsCardTellsWhoItIsAndGoesWithIt) {
    std::string card;
    {
        client brief{server.url()};
        mutex lock{brief, "x"};
        const lease held = lock.acquire();
        card = "hf:client:" + held.id().substr(0, held.id().find('.'));
        EXPECT_TRUE(eventually([&] { return server.call({"PTTL", card}).integer > 0; }));
        EXPECT_EQ(server.call({"HGET", card, "pid"}).text, std::to_string(::getpid()));
        EXPECT_NE(server.call({"HGET", card, "host"}).text, "");
    }
    EXPECT_TRUE(eventually([&] { return free(card); }));
}

}  // namespace
}  // namespace holdfast::testing::owner_test
