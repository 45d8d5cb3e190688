// Watching a lock, and leader election, on a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <mutex>
#include <thread>

#include "integration/refusal.hpp"
#include "integration/sights.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::watch_test {
namespace {

using namespace std::chrono_literals;

class Watch : public ::testing::Test {  // R55
protected:
    redis_server server;
    client subject{server.url()};
    client other{server.url()};
    mutex stock{subject, "stock"};
    sights seen;
};

TEST_F(Watch, TellsTheHolderNowAndAfterEachChange) {
    lease held = stock.acquire({.note = "first"});
    const watching eye = watch(other, "stock", seen.callback());
    ASSERT_TRUE(seen.sees(held.id()));
    EXPECT_EQ(seen.all().back().note, "first");
    EXPECT_EQ(seen.all().back().token, held.token());
    held.release();
    ASSERT_TRUE(seen.sees(""));
    held = stock.acquire();
    ASSERT_TRUE(seen.sees(held.id()));
    std::uint64_t last = 0;
    for (const sight& one : seen.all()) {
        EXPECT_GE(one.token, last);
        last = one.token;
    }
}

TEST_F(Watch, TellsAnExpiry) {
    mutex brief{subject, "stock", {.lease = 500ms, .renew = false}};
    lease held = brief.acquire();
    const watching eye = watch(other, "stock", seen.callback());
    ASSERT_TRUE(seen.sees(held.id()));
    EXPECT_TRUE(seen.sees("")) << "nobody releases it";
}

TEST_F(Watch, SurvivesABrokenLink) {
    const watching eye = watch(other, "stock", seen.callback());
    ASSERT_TRUE(seen.sees(""));
    server.call({"CLIENT", "KILL", "TYPE", "normal"});
    const lease held = stock.acquire();
    EXPECT_TRUE(seen.sees(held.id()));
}

TEST_F(Watch, ThatStoppedIsToldNothing) {
    {
        const watching eye = watch(other, "stock", seen.callback());
        ASSERT_TRUE(seen.sees(""));
    }
    EXPECT_TRUE(eventually([&] { return server.call({"EXISTS", "hf:{stock}:waiters"}).integer == 0; }, an_age));
    const lease held = stock.acquire();
    other.ping();
    EXPECT_EQ(seen.all().size(), 1U);
}

TEST_F(Watch, MayBeEndedByItsCallback) {
    watching eye;
    std::atomic<bool> is_there = false;
    std::atomic<bool> was_called = false;
    eye = watch(other, "stock", [&](const sight&) {
        EXPECT_TRUE(eventually([&] { return is_there.load(); }, an_age));
        eye.stop();
        was_called = true;
    });
    is_there = true;
    EXPECT_TRUE(eventually([&] { return was_called.load(); }, an_age));
}

TEST_F(Watch, WithASlowCallbackIsToldTheNewestStateNext) {
    std::atomic<bool> may_go_on = false;
    std::atomic<int> calls = 0;
    const watching eye = watch(other, "stock", [&](const sight& one) {
        if (++calls == 1) {
            EXPECT_TRUE(eventually([&] { return may_go_on.load(); }, an_age));
        }
        seen.callback()(one);
    });
    ASSERT_TRUE(eventually([&] { return calls == 1; }, an_age));
    sights quick;
    const watching other_eye = watch(subject, "stock", quick.callback());
    lease held;
    for (int i = 0; i < 20; ++i) {
        held = stock.acquire();
        ASSERT_TRUE(quick.sees(held.id()));
        held.release();
        ASSERT_TRUE(quick.sees(""));
    }
    held = stock.acquire();
    ASSERT_TRUE(quick.sees(held.id()));
    other.ping();
    may_go_on = true;
    ASSERT_TRUE(seen.sees(held.id()));
    EXPECT_LE(seen.all().size(), 5U) << "what was over meanwhile is left out";
}

TEST_F(Watch, OfAHoldWhoseTokenTheServerForgotTellsNothingNew) {
    const lease held = stock.acquire();
    const watching eye = watch(other, "stock", seen.callback());
    ASSERT_TRUE(seen.sees(held.id()));
    server.call({"DEL", "hf:{stock}:fence"});
    const watching later_one = watch(other, "stock", [](const sight&) {});
    server.call({"CLIENT", "KILL", "TYPE", "normal"});  // it asks again
    sights late;
    const watching third = watch(other, "stock", late.callback());
    ASSERT_TRUE(late.sees(held.id()));
    EXPECT_EQ(late.all().back().token, 0U) << "not known any more";
    for (const sight& one : seen.all()) EXPECT_EQ(one.token, held.token());
    EXPECT_EQ(seen.all().size(), 1U);
}

TEST_F(Watch, OfAnotherKindOfLockTellsTheTrouble) {
    shared_mutex catalog{subject, "catalog"};
    const lease held = catalog.acquire_shared();
    std::atomic<errc> why{};
    const watching eye =
        watch(other, "catalog", seen.callback(), {.on_trouble = [&](const refusal& told) { why = told.code; }});
    EXPECT_TRUE(eventually([&] { return why.load() == errc::wrong_type; }, an_age));
}

TEST_F(Watch, HoldsUpNobodyInTheQueue) {
    const watching eye = watch(other, "stock", seen.callback());
    ASSERT_TRUE(seen.sees(""));
    mutex theirs{other, "stock"};
    for (int i = 0; i < 20; ++i) {
        lease held = stock.acquire();
        std::thread next([&] { theirs.acquire().release(); });
        held.release();
        next.join();
    }
    EXPECT_TRUE(seen.sees(""));
}

TEST(WatchOnACluster, TellsOverTheShardedChannel) {
    redis_cluster cluster;
    client subject{cluster.url()};
    client other{cluster.url()};
    mutex stock{subject, "stock"};
    sights seen;
    const watching eye = watch(other, "stock", seen.callback());
    ASSERT_TRUE(seen.sees(""));
    lease held = stock.acquire({.note = "first"});
    ASSERT_TRUE(seen.sees(held.id()));
    EXPECT_EQ(seen.all().back().note, "first");
    held.release();
    EXPECT_TRUE(seen.sees(""));
}

class Election : public Watch {};  // R56

TEST_F(Election, HasOneLeaderAndHandsOverWhenItResigns) {
    election mine{subject, "leader", {.lease = 5s}};
    election theirs{other, "leader", {.lease = 5s}};
    EXPECT_FALSE(mine.leader());
    lease first = mine.campaign("node-1:8080");
    ASSERT_TRUE(theirs.leader());
    EXPECT_EQ(theirs.leader()->value, "node-1:8080");
    EXPECT_EQ(theirs.leader()->token, first.token());
    EXPECT_FALSE(theirs.try_campaign_for(10ms, "node-2:8080"));
    EXPECT_FALSE(mine.resign(first));
    const lease second = theirs.campaign("node-2:8080");
    EXPECT_EQ(mine.leader()->value, "node-2:8080");
    EXPECT_GT(second.token(), 0U);
}

TEST_F(Election, ObserversHearLeadersInTheOrderOfTheirTokens) {
    election mine{subject, "leader"};
    election theirs{other, "leader"};
    std::mutex guard;
    std::vector<leader> heard;
    const watching eye = theirs.observe([&](const std::optional<leader>& who) {
        const std::lock_guard one(guard);
        if (who) heard.push_back(*who);
    });
    std::uint64_t last = 0;
    for (int i = 0; i < 10; ++i) {
        lease held = (i % 2 == 0 ? mine : theirs).campaign("node " + std::to_string(i));
        EXPECT_TRUE(eventually(
            [&] {
                const std::lock_guard one(guard);
                return !heard.empty() && heard.back().value == "node " + std::to_string(i);
            },
            an_age));
        held.release();
    }
    for (const leader& one : heard) {
        EXPECT_GT(one.token, last);
        last = one.token;
    }
}

TEST_F(Election, TakesTheOptionsOfAMutexButThoseWithoutPlaceForAValue) {
    for (const election_options& refused :
         {election_options{.keys = keys::raw}, election_options{.keep = 1s}, election_options{.passes = 3}}) {
        EXPECT_EQ(condition_of([&] { const election none(subject, "leader", refused); }), errc::bad_option);
    }
    const election usual{subject, "leader", {.lease = 30s, .delay = 30s}};
    EXPECT_EQ(condition_of([&] { const election none(subject, "leader", {.lease = 30s, .delay = 60s}); }),
              errc::bad_option);
}

// The former leader cannot hear that it lost, but knows it before anybody else leads.
TEST_F(Election, ALeaderThatIsCutOffKnowsThatItLostBeforeAnotherLeads) {
    tcp_proxy way{server.port()};
    client far{way.url()};
    election mine{far, "leader", {.lease = 1s}};
    election theirs{other, "leader", {.lease = 1s}};
    sights observed;
    const watching eye = watch(other, "leader", observed.callback());
    for (int i = 0; i < 3; ++i) {
        lease first = mine.campaign("cut off");
        way.stall(direction::both);
        lease second = theirs.campaign("the next");
        EXPECT_EQ(first.validity(), 0ms);
        EXPECT_GT(second.token(), first.token());
        EXPECT_TRUE(eventually([&] { return first.lost().stop_requested(); }, an_age));
        EXPECT_TRUE(observed.sees(second.id()));
        way.unstall(direction::both);
        theirs.resign(second);
        mine.resign(first);
    }
    observed.expect_order();
}

}  // namespace
}  // namespace holdfast::testing::watch_test
