// A primary of a Cluster fails while many hold locks and wait for them: all are served or told, and soon. Those whose
// locks are elsewhere notice nothing.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <future>
#include <iostream>
#include <set>
#include <string>

#include "integration/crowd.hpp"
#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"

namespace holdfast::testing::cluster_failover_test {
namespace {

using namespace std::chrono_literals;

class ClusterFailover : public ::testing::Test {
protected:
    void hold_and_wait() {
        all.hold_and_wait();
        ASSERT_TRUE(eventually([&] { return in_queue() == crowd::many; }, an_age));
        // All of it is on the replicas.
        ASSERT_TRUE(eventually([&] { return offset_of(victim) == offset_of(cluster.replica_of(victim)); }, an_age));
    }

    /// In the lines of all locks.
    std::size_t in_queue() {
        std::size_t count = 0;
        for (std::size_t i = 0; i < crowd::many; ++i) {
            for (int member = 0; member < 3; ++member) {  // those that do not own it say so
                redis_server& each = cluster.members[static_cast<std::size_t>(member)];
                count += static_cast<std::size_t>(each.call({"ZCARD", crowd::queue_of(i)}).integer);
            }
        }
        return count;
    }
    static std::string offset_of(redis_server& server) { return server.info("replication", "master_repl_offset"); }

    /// Of the locks that the others have.
    void expect_others_go_on() {
        std::size_t others = 0;
        for (std::size_t i = 0; i < crowd::many; ++i) {
            if (victims_names.contains(crowd::name_of(i))) continue;
            ++others;
            EXPECT_FALSE(all.held[i].renew()) << crowd::name_of(i);
        }
        EXPECT_GT(others, 0U);
    }
    /// The victim is gone; its replica is let in when all have noticed.
    void expect_all_go_on() {
        const auto began = crowd::steady::now();
        ASSERT_TRUE(cluster.is_given_up(victim));
        expect_others_go_on();
        redis_server& successor = cluster.replica_of(victim);
        auto replaced =
            std::async(std::launch::async, [&] { return cluster.has_replaced(victim, crowd::queue_of(0)); });
        const auto serving = crowd::first_write([&] { return &successor; }, crowd::queue_of(0) + ":probe");
        std::cout << "failed over within " << crowd::since(began).count() << " ms\n";
        all.expect_all_served(serving);
        EXPECT_TRUE(replaced.get());
    }

    redis_cluster cluster{{.config = {"cluster-require-full-coverage no"}}};
    redis_server& victim = cluster.owner_of(crowd::queue_of(0));
    const std::set<std::string> victims_names = names_at(victim);
    // This Cluster gives a primary up ten times as fast as one does by default; so its links are watched more closely,
    // too.
    crowd all{cluster.url() + "?health_interval=1s"};

private:
    std::set<std::string> names_at(redis_server& member) {
        std::set<std::string> names;
        for (std::size_t i = 0; i < crowd::many; ++i) {
            if (&cluster.owner_of(crowd::queue_of(i)) == &member) names.insert(crowd::name_of(i));
        }
        return names;
    }
};

TEST_F(ClusterFailover, WhenAPrimaryIsKilledAllGoOnWithItsReplicaAndTheOthersDoNotNotice) {
    ASSERT_NO_FATAL_FAILURE(hold_and_wait());
    victim.kill();
    expect_all_go_on();
}

// Its links are all there.
TEST_F(ClusterFailover, WhenAPrimaryHangsAllGoOnWithItsReplica) {
    ASSERT_NO_FATAL_FAILURE(hold_and_wait());
    victim.pause();
    expect_all_go_on();
    victim.resume();
    mutex again{all.holding[0], crowd::name_of(0)};
    EXPECT_TRUE(again.try_acquire_for(an_age));
}

// That others do not notice is a setting of the Cluster: this is its default.
TEST(ClusterWithFullCoverage, RefusesAllLocksWhileAPrimaryIsMissed) {
    redis_cluster cluster;
    client subject{cluster.url()};
    client other{cluster.url()};
    mutex ours{subject, "stock", {.lease = 60s}};
    mutex theirs{other, "stock", {.lease = 60s}};
    lease held = ours.acquire();
    redis_server& victim = cluster.other_than_owner_of("hf:{stock}");
    victim.kill();
    ASSERT_TRUE(cluster.is_given_up(victim));
    EXPECT_TRUE(held.renew());
    // The last question may be unanswered when its time is over.
    const auto is_down = [&] { return condition_of([&] { theirs.try_acquire(); }) == errc::cluster_down; };
    EXPECT_TRUE(eventually(is_down, an_age));
}

}  // namespace
}  // namespace holdfast::testing::cluster_failover_test
