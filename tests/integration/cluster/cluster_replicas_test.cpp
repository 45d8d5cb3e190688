// Locks of a Cluster that count only what a replica has: three primaries with one each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/documented_user.hpp"
#include "support/eventually.hpp"
#include "support/leftovers.hpp"
#include "support/redis_cluster.hpp"
#include "support/replica_set.hpp"

namespace holdfast::testing::cluster_replicas_test {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

/// A replica that runs acknowledges within this on the slowest machine; one that is stopped never does.
constexpr milliseconds patient{3000};
constexpr milliseconds hurried{50};
const std::string with_time_for_it = "?timeout=6s";

mutex_options acknowledged(milliseconds within) {
    return {.lease = 60s, .replicas = 1, .replica_timeout = within};
}

class ClusterReplicas : public ::testing::Test {
protected:
    static inline const std::string stock = "hf:{stock}";

    ~ClusterReplicas() override {
        for (redis_server& each : cluster.members) each.resume();
    }

    /// A replica does not answer for keys, but tells which ones it has.
    static bool has(redis_server& member, const std::string& key) {
        const std::string slot = std::to_string(member.call({"CLUSTER", "KEYSLOT", key}).integer);
        for (const redis_reply& each : member.call({"CLUSTER", "GETKEYSINSLOT", slot, "100"}).elements) {
            if (each.text == key) return true;
        }
        return false;
    }
    bool becomes_free(const std::string& key) {
        return eventually([&] { return !has(cluster.owner_of(key), key); }, an_age);
    }

    redis_cluster cluster;
    client subject{cluster.url() + with_time_for_it};
};

TEST_F(ClusterReplicas, AGrantIsOnTheReplicaWhenItIsTold) {
    for (int i = 0; i < 20; ++i) {
        const std::string name = "shelf " + std::to_string(i);
        mutex lock{subject, name, acknowledged(patient)};
        lease held = lock.acquire();
        redis_server& owner = cluster.owner_of("hf:{" + name + "}");
        EXPECT_TRUE(has(cluster.replica_of(owner), "hf:{" + name + "}"));
        EXPECT_FALSE(held.renew());
        EXPECT_FALSE(held.release());
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(leftovers(cluster.members[i]), "");
}

TEST_F(ClusterReplicas, AGrantThatTheReplicaDoesNotHaveIsUndoneAndReportedAndOthersAreNot) {
    redis_server& owner = cluster.owner_of(stock);
    cluster.replica_of(owner).pause();
    mutex lock{subject, "stock", acknowledged(hurried)};
    EXPECT_EQ(condition_of([&] { lock.acquire(); }), errc::not_replicated);
    EXPECT_TRUE(becomes_free(stock));
    EXPECT_EQ(condition_of([&] { lock.try_acquire(); }), errc::not_replicated);
    EXPECT_TRUE(becomes_free(stock));
    std::string elsewhere = "shelf";
    while (&cluster.owner_of("hf:{" + elsewhere + "}") == &owner) elsewhere += "!";
    EXPECT_TRUE((mutex{subject, elsewhere, acknowledged(patient)}.acquire()));
    cluster.replica_of(owner).resume();
    mutex again{subject, "stock", acknowledged(patient)};
    EXPECT_TRUE(eventually([&] { return condition_of([&] { again.acquire(); }) == errc{}; }, an_age));
}

TEST_F(ClusterReplicas, AReadWriteLockIsAcknowledgedInAllItsModes) {
    shared_mutex catalog{subject, "catalog", {.lease = 60s, .replicas = 1, .replica_timeout = patient}};
    lease reading = catalog.acquire_shared();
    EXPECT_FALSE(reading.renew());
    lease writing = reading.upgrade();
    EXPECT_FALSE(writing.renew());
    lease again = writing.downgrade();
    redis_server& replica = cluster.replica_of(cluster.owner_of("hf:{catalog}"));
    for (const std::string key : {"hf:{catalog}", "hf:{catalog}:leases", "hf:{catalog}:grants"}) {
        EXPECT_TRUE(has(replica, key)) << key;
    }
    replica.pause();
    shared_mutex quickly{subject, "catalog", {.lease = 60s, .replicas = 1, .replica_timeout = hurried}};
    EXPECT_EQ(condition_of([&] { quickly.acquire_shared(); }), errc::not_replicated);
}

TEST_F(ClusterReplicas, AMemberThatIsFullIsAskedForThemAllTheSame) {
    mutex lock{subject, "stock", acknowledged(patient)};
    lease held = lock.acquire();
    shared_mutex catalog{subject, "catalog", {.lease = 60s, .replicas = 1, .replica_timeout = patient}};
    lease reading = catalog.acquire_shared();
    for (redis_server& each : cluster.members) each.call({"CONFIG", "SET", "maxmemory", "1"});
    ASSERT_TRUE(cluster.owner_of(stock).call({"SET", stock + ":more", "x"}).is_error());
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(reading.renew());
    for (redis_server& each : cluster.members) each.call({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(ClusterReplicas, AfterAKillNobodyElseComesInWhereAGrantWasAcknowledged) {
    constexpr std::size_t many = 20;
    client holding{cluster.url() + with_time_for_it, {.max_lease = 600s}};
    mutex_options terms = acknowledged(patient);
    terms.lease = 600s;  // who takes over has no replica: nothing is renewed any more
    std::vector<lease> held;
    const auto name_of = [](std::size_t i) { return "shelf " + std::to_string(i); };
    for (std::size_t i = 0; i < many; ++i) held.push_back(mutex{holding, name_of(i), terms}.acquire());
    redis_server& victim = cluster.owner_of("hf:{" + name_of(0) + "}");
    victim.kill();
    ASSERT_TRUE(cluster.is_given_up(victim));
    ASSERT_TRUE(cluster.has_replaced(victim, "hf:{" + name_of(0) + "}"));
    client other{cluster.url() + with_time_for_it};
    for (std::size_t i = 0; i < many; ++i) {
        refusal why;
        mutex theirs{other, name_of(i)};
        EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
        EXPECT_EQ(why.holder, held[i].id());
        EXPECT_FALSE(held[i].lost().stop_requested());
    }
    // When there is a replica again, that one is asked for.
    ASSERT_TRUE(cluster.comes_back(victim));
    EXPECT_TRUE(eventually([&] { return !held[0].renew(); }, an_age));
    for (lease& each : held) EXPECT_FALSE(each.release());
}

TEST_F(ClusterReplicas, ASlotThatMovesUnderThemTellsNoErrorAndLosesNoUpdate) {
    std::atomic<int> value = 0;  // read, then written: only the lock keeps updates
    std::atomic<int> rounds = 0;
    std::vector<std::jthread> running;
    for (int i = 0; i < 4; ++i) {
        running.emplace_back([&](const std::stop_token& stop) {
            mutex lock{subject, "stock", acknowledged(patient)};
            while (!stop.stop_requested()) {
                try {
                    const lease got = lock.try_acquire_for(4 * an_age);
                    if (!got) continue;
                    const int before = value;
                    std::this_thread::yield();
                    value = before + 1;
                    ++rounds;
                } catch (const error& refused) {
                    ADD_FAILURE() << refused.what();
                    return;
                }
            }
        });
    }
    for (int i = 0; i < 6 && !HasFailure(); ++i) {
        const int before = rounds;
        cluster.move_slot(stock, cluster.other_than_owner_of(stock));
        EXPECT_TRUE(eventually([&] { return rounds > before + 4; }, 2 * an_age)) << "after move " << i;
    }
    for (std::jthread& each : running) each.request_stop();
    running.clear();
    EXPECT_EQ(value, rounds);
}

// The hold has gone to the new owner with its slot: that one's replica is asked, and not the former owner's.
TEST_F(ClusterReplicas, ARenewalAfterAMoveIsAcknowledgedByTheNewOwnersReplica) {
    mutex lock{subject, "stock", acknowledged(hurried)};
    lease held;
    ASSERT_TRUE(eventually([&] { return condition_of([&] { held = lock.acquire(); }) == errc{}; }, an_age));
    redis_server& next = cluster.other_than_owner_of(stock);
    cluster.move_slot(stock, next);
    EXPECT_TRUE(eventually([&] { return !held.renew(); }, an_age));
    EXPECT_TRUE(has(cluster.replica_of(next), stock));
    cluster.replica_of(next).pause();
    EXPECT_EQ(held.renew(), make_error_code(errc::not_replicated));
}

TEST(ClusterReplicasAndRights, TheDocumentedUserMayAskForThem) {
    const documented_user user = documented("cluster-locks");
    redis_cluster cluster{{.acl_users = {user.line()}}};
    client subject{cluster.url(user.name + ":" + user.password) + with_time_for_it};
    mutex lock{subject, "stock", acknowledged(patient)};
    shared_mutex catalog{subject, "catalog", {.lease = 60s, .replicas = 1, .replica_timeout = patient}};
    lease held = lock.acquire();
    lease writing = catalog.acquire();
    for (lease* const each : {&held, &writing}) {
        EXPECT_FALSE(each->renew());
        EXPECT_FALSE(each->release());
    }
    for (redis_server& each : cluster.members) EXPECT_THAT(each.call({"ACL", "LOG"}).elements, IsEmpty());
}

TEST(ClusterReplicasInAMajority, AreAskedForNodeByNode) {
    redis_server alone;
    replica_set set{1};
    redis_cluster cluster;
    // Just started, they are not believed for as long as the longest lease.
    constexpr auto lease_time = 8s;
    client subject{std::vector<std::string>{alone.url() + with_time_for_it, set.primary.url() + with_time_for_it,
                                            cluster.url() + with_time_for_it},
                   {.max_lease = lease_time}};
    mutex lock{subject, "stock", {.lease = lease_time, .replicas = 1, .replica_timeout = patient}};
    lease held;
    ASSERT_TRUE(eventually([&] { return condition_of([&] { held = lock.try_acquire_for(an_age); }) == errc{} && held; },
                           2 * an_age));
    redis_server& owner = cluster.owner_of("hf:{stock}");
    const auto slot = std::to_string(owner.call({"CLUSTER", "KEYSLOT", "hf:{stock}"}).integer);
    EXPECT_GE(cluster.replica_of(owner).call({"CLUSTER", "COUNTKEYSINSLOT", slot}).integer, 1)
        << "the server without a replica has no vote, so the Cluster's was needed";
    EXPECT_EQ(set.replicas[0].call({"GET", "hf:{stock}"}).text, held.id());
}

}  // namespace
}  // namespace holdfast::testing::cluster_replicas_test
