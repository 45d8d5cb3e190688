// Watching a lock while servers fail over, slots move and links break; and where nothing can be pushed. R55
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <future>
#include <string>
#include <utility>

#include "integration/sights.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/sentinel_set.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::watch_faults_test {
namespace {

using namespace std::chrono_literals;

/// A holder and a watcher, each with a client of its own.
struct pair {
    explicit pair(const std::string& url) : subject{url}, other{url} {}

    /// Another grant and its release are told.
    void expect_watched() {
        held = stock.acquire();
        EXPECT_TRUE(seen.sees(held.id()));
        EXPECT_EQ(seen.all().back().token, held.token());
        EXPECT_FALSE(held.release());
        EXPECT_TRUE(seen.sees(""));
    }

    client subject;
    client other;
    mutex stock{subject, "stock", {.lease = 60s}};
    sights seen;
    watching eye = watch(other, "stock", seen.callback());
    lease held;
};

TEST(WatchWithSentinels, GoesOnWithTheNextPrimary) {
    sentinel_set set;
    pair two{set.url()};
    two.held = two.stock.acquire({.note = "first"});
    ASSERT_TRUE(two.seen.sees(two.held.id()));
    ASSERT_TRUE(set.is_settled());
    redis_server& former = set.primary();
    former.kill();
    ASSERT_TRUE(set.has_replaced(former)) << set.sentinels[0].log_tail();
    EXPECT_EQ(two.seen.all().back().holder, two.held.id()) << "the successor knows the hold, too";
    EXPECT_FALSE(two.held.release());
    EXPECT_TRUE(two.seen.sees(""));
    two.expect_watched();
    two.seen.expect_order();
}

TEST(WatchOnACluster, GoesOnWithTheNextPrimary) {
    redis_cluster cluster;
    pair two{cluster.url() + "?health_interval=1s"};
    two.held = two.stock.acquire();
    ASSERT_TRUE(two.seen.sees(two.held.id()));
    redis_server& victim = cluster.owner_of("hf:{stock}");
    redis_server& successor = cluster.replica_of(victim);
    const auto offset_of = [](redis_server& which) { return which.info("replication", "master_repl_offset"); };
    ASSERT_TRUE(eventually([&] { return offset_of(victim) == offset_of(successor); }, an_age));
    victim.kill();
    ASSERT_TRUE(cluster.is_given_up(victim));
    ASSERT_TRUE(cluster.has_replaced(victim, "hf:{stock}"));
    EXPECT_FALSE(two.held.release());
    EXPECT_TRUE(two.seen.sees(""));
    two.expect_watched();
    two.seen.expect_order();
}

TEST(WatchOnACluster, GoesOnWhereTheSlotMovesTo) {
    redis_cluster cluster{{.replicas = false}};
    pair two{cluster.url()};
    ASSERT_TRUE(two.seen.sees(""));
    two.expect_watched();
    two.held = two.stock.acquire();
    ASSERT_TRUE(two.seen.sees(two.held.id()));
    cluster.move_slot("hf:{stock}", cluster.other_than_owner_of("hf:{stock}"));
    EXPECT_FALSE(two.held.release());
    EXPECT_TRUE(two.seen.sees(""));
    two.expect_watched();
    // A change in the middle of a move.
    two.held = two.stock.acquire();
    ASSERT_TRUE(two.seen.sees(two.held.id()));
    const auto move = cluster.begin_move("hf:{stock}", cluster.other_than_owner_of("hf:{stock}"));
    auto released = std::async(std::launch::async, [&] { return two.held.release(); });
    while (cluster.move_keys(move, 1)) {
    }
    cluster.finish_move(move);
    EXPECT_FALSE(released.get());
    EXPECT_TRUE(two.seen.sees(""));
    two.expect_watched();
    two.seen.expect_order();
}

class WatchThroughAProxy : public ::testing::Test {
protected:
    redis_server server;
    tcp_proxy way{server.port()};
    client subject{server.url()};
    client far{way.url() + "?timeout=500ms"};
    mutex stock{subject, "stock", {.lease = 60s}};
    sights seen;
    std::atomic<int> troubles = 0;
    watching eye = watch(far, "stock", seen.callback(), {.on_trouble = [this](const refusal&) { ++troubles; }});
};

TEST_F(WatchThroughAProxy, TellsAfterACutWhatChangedMeanwhile) {
    lease first = stock.acquire();
    const std::string former = first.id();
    ASSERT_TRUE(seen.sees(former));
    way.refuse();
    way.cut();
    first.release();
    const lease second = stock.acquire();
    EXPECT_TRUE(eventually([&] { return troubles == 1; }, an_age)) << "nothing can be known";
    EXPECT_EQ(seen.all().back().holder, former);
    way.accept();
    EXPECT_TRUE(seen.sees(second.id()));
    EXPECT_EQ(troubles, 1);
    seen.expect_order();
}

TEST_F(WatchThroughAProxy, TellsWhatAHalfOpenLinkHeldBack) {
    lease first = stock.acquire();
    ASSERT_TRUE(seen.sees(first.id()));
    // The message gets lost: the watcher's own poll finds that nobody answers.
    way.stall(direction::to_client);
    first.release();
    const lease second = stock.acquire();
    ASSERT_TRUE(eventually([&] { return troubles >= 1; }, an_age));
    way.unstall(direction::to_client);
    EXPECT_TRUE(seen.sees(second.id()));
    seen.expect_order();
}

TEST_F(WatchThroughAProxy, TellsLateButInOrderOverASlowLink) {
    ASSERT_TRUE(seen.sees(""));
    way.delay(direction::to_client, 20ms);
    std::string last;
    for (int i = 0; i < 20; ++i) {
        lease held = stock.acquire();
        last = held.id();
        if (i < 19)
            held.release();
        else
            EXPECT_TRUE(seen.sees(last));
    }
    EXPECT_TRUE(seen.sees(""));
    seen.expect_order();
}

/// No push on the link of the requests, or none at all.
class WatchWithoutPushes : public ::testing::TestWithParam<const char*> {};

TEST_P(WatchWithoutPushes, TellsTheSame) {
    redis_server server;
    pair two{server.url() + GetParam()};
    ASSERT_TRUE(two.seen.sees(""));
    for (int i = 0; i < 3; ++i) two.expect_watched();
    mutex brief{two.subject, "stock", {.lease = 300ms, .renew = false}};
    const lease dies = brief.acquire({.note = "dies"});
    EXPECT_TRUE(two.seen.sees(dies.id()));
    EXPECT_TRUE(two.seen.sees("")) << "its lease is over";
    server.call({"CLIENT", "KILL", "TYPE", "normal"});
    server.call({"CLIENT", "KILL", "TYPE", "pubsub"});
    two.expect_watched();
    two.seen.expect_order();
}

INSTANTIATE_TEST_SUITE_P(Links, WatchWithoutPushes, ::testing::Values("?resp=2", "?wake=poll", "?resp=2&wake=poll"));

}  // namespace
}  // namespace holdfast::testing::watch_faults_test
