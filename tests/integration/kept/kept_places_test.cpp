// Kept locks where the lock is not on one server: in a Cluster, behind Sentinels, on a majority, with replicas. Local
// grants ask nothing there either, others get the lock when they want it, and a change of servers changes nothing of
// that. R50 R51 R52
#include "integration/quorum/quorum_fixture.hpp"
#include "support/redis_cluster.hpp"
#include "support/replica_set.hpp"
#include "support/sentinel_set.hpp"

namespace holdfast::testing::kept_places_test {
namespace {

const std::string key = "hf:{stock}";

/// One client that keeps the lock, and another one.
struct keeping {
    explicit keeping(const std::string& url, unsigned replicas = 0)
        : subject(url, {.metrics = counted}),
          other(url),
          lock(subject, "stock",
               {.lease = 20s, .replicas = replicas, .replica_timeout = 1s, .keep = 60s, .passes = 16}),
          theirs(other, "stock", {.lease = 20s, .replicas = replicas, .replica_timeout = 1s}) {}

    // A hold is kept only once the client can be asked for it, which the first acquisition may be too early for.
    [[nodiscard]] bool warm_up() {
        const auto before = counted->local_grants.load();
        return eventually([&] {
            use();
            subject.ping();
            return counted->local_grants > before;
        });
    }
    void use() {
        lease held = lock.try_acquire_for(an_age);
        ASSERT_TRUE(held);
        const std::uint64_t token = held.token();
        EXPECT_GT(token, last);
        last = token;
        EXPECT_FALSE(held.lost().stop_requested());
        EXPECT_FALSE(held.release());
    }
    void others_use() {
        lease held = theirs.try_acquire_for(an_age);
        ASSERT_TRUE(held);
        EXPECT_GT(held.token(), last);
        last = held.token();
        EXPECT_FALSE(held.release());
    }

    std::shared_ptr<metrics> counted = std::make_shared<metrics>();
    client subject;
    client other;
    mutex lock;
    mutex theirs;
    std::uint64_t last = 0;
};

class KeptInACluster : public ::testing::Test {
protected:
    redis_server& owner() { return cluster.owner_of(key); }
    std::string holder() { return owner().call({"GET", key}).text; }

    redis_cluster cluster{{.replicas = false}};
    keeping both{cluster.url()};
};

TEST_F(KeptInACluster, ItIsAskedBackOnTheChannelOfItsSlot) {
    ASSERT_TRUE(both.warm_up());
    const auto channels = owner().call({"PUBSUB", "SHARDCHANNELS", "hf:wake:{stock}:*"});
    EXPECT_EQ(channels.elements.size(), 1U);
    for (redis_server& each : cluster.members) each.reset_stats();
    for (int i = 0; i < 1000; ++i) both.use();
    std::int64_t calls = 0;
    for (redis_server& each : cluster.members) calls += each.command_calls("evalsha") + each.command_calls("eval");
    EXPECT_LE(calls, 3) << "renewals only";
    for (int i = 0; i < 5; ++i) {
        both.others_use();
        ASSERT_TRUE(both.warm_up());
        EXPECT_TRUE(both.theirs.try_lock()) << "a try beside a lock that nobody uses";
        both.theirs.unlock();
        ASSERT_TRUE(both.warm_up());
    }
    EXPECT_GE(both.counted->give_backs, 10U);
}

TEST_F(KeptInACluster, ItIsKeptAndGivenBackWhileAndAfterItsSlotMoves) {
    ASSERT_TRUE(both.warm_up());
    const std::string before = holder();
    redis_server& from = owner();
    redis_server& to = cluster.other_than_owner_of(key);
    const redis_cluster::move under_way = cluster.begin_move(key, to);
    both.use();
    while (cluster.move_keys(under_way, 1)) both.use();
    both.use();
    EXPECT_EQ(from.call({"CLUSTER", "COUNTKEYSINSLOT", under_way.slot}).integer, 0);
    cluster.finish_move(under_way);
    for (int i = 0; i < 100; ++i) both.use();
    EXPECT_EQ(holder(), before) << "it was never lost or released";
    both.others_use();
    EXPECT_NE(holder(), before);
    ASSERT_TRUE(both.warm_up());
    both.others_use();
}

TEST_F(KeptInACluster, ManySlotMovesUnderLoadLoseNoUpdate) {
    int value = 0;
    std::atomic<bool> is_over = false;
    std::vector<std::jthread> all;
    std::atomic<int> rounds = 0;
    for (mutex* const lock : {&both.lock, &both.theirs}) {
        for (int t = 0; t < 3; ++t) {
            all.emplace_back([&, lock] {
                while (!is_over) {
                    const lease held = lock->try_acquire_for(2 * an_age);
                    ASSERT_TRUE(held);
                    const int read = value;
                    std::this_thread::yield();
                    value = read + 1;
                    ++rounds;
                }
            });
        }
    }
    for (int i = 0; i < 6; ++i) {
        const int then = rounds;
        cluster.move_slot(key, cluster.other_than_owner_of(key));
        EXPECT_TRUE(eventually([&] { return rounds > then; }, an_age)) << "move " << i;
    }
    is_over = true;
    all.clear();
    EXPECT_EQ(value, rounds);
}

TEST(KeptInAClusterWithReplicas, AReplicaThatTakesOverHasTheKeptHold) {
    redis_cluster cluster;
    keeping both{cluster.url() + "?timeout=6s", 1};
    ASSERT_TRUE(both.warm_up());
    const std::string before = cluster.owner_of(key).call({"GET", key}).text;
    ASSERT_TRUE(cluster.fail_over(key));
    for (int i = 0; i < 100; ++i) both.use();
    EXPECT_EQ(cluster.owner_of(key).call({"GET", key}).text, before);
    both.others_use();
    ASSERT_TRUE(both.warm_up());
    both.others_use();
}

TEST(KeptBehindSentinels, AfterAFailoverItIsProvedAnewAndGivenBack) {
    sentinel_set set;
    keeping both{set.url()};
    ASSERT_TRUE(both.warm_up());
    ASSERT_TRUE(set.is_settled());
    redis_server& former = set.primary();
    const std::string before = former.call({"GET", key}).text;
    ASSERT_TRUE(set.fail_over());
    ASSERT_TRUE(set.has_moved_from(former));
    both.use();
    EXPECT_EQ(set.primary().call({"GET", key}).text, before);
    for (int i = 0; i < 100; ++i) both.use();
    both.others_use();
    ASSERT_TRUE(both.warm_up());
    both.others_use();
    EXPECT_GE(both.counted->give_backs, 2U);
}

// Its data are lost: the next local grants are of a hold of the new primary.
TEST(KeptBehindSentinels, AHoldThatTheNewPrimaryLacksIsLostAndAcquiredAnew) {
    sentinel_set set;
    keeping both{set.url()};
    ASSERT_TRUE(both.warm_up());
    lease held = both.lock.acquire();
    ASSERT_TRUE(set.is_settled());
    redis_server& former = set.primary();
    ASSERT_TRUE(set.fail_over());
    ASSERT_TRUE(set.has_moved_from(former));
    set.primary().call({"DEL", key});
    EXPECT_TRUE(eventually([&] { return held.renew() || held.lost().stop_requested(); }, an_age));
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, an_age));
    EXPECT_EQ(held.release(), errc::lost);
    both.use();
    both.others_use();
}

TEST(KeptWithReplicas, LocalGrantsAskNobodyAndNumbersAreAcknowledged) {
    replica_set set(2);
    keeping both{set.primary.url() + "?timeout=6s", 2};
    ASSERT_TRUE(both.warm_up());
    set.primary.reset_stats();
    for (int i = 0; i < 1000; ++i) both.use();
    EXPECT_LE(set.primary.command_calls("evalsha") + set.primary.command_calls("eval"), 4) << "renewals only";
    ASSERT_TRUE(set.has_caught_up());
    for (redis_server& each : set.replicas) {
        EXPECT_LE(both.last, std::stoull(each.call({"GET", key + ":fence"}).text));
    }
    both.others_use();
    ASSERT_TRUE(both.warm_up());
}

class KeptOnAMajority : public quorum_fixture {
protected:
    std::int64_t calls() {
        std::int64_t all = 0;
        for (redis_server& each : servers) all += each.command_calls("evalsha") + each.command_calls("eval");
        return all;
    }
    // Kept: the same hold before and after a release.
    [[nodiscard]] bool warm_up(mutex& lock) {
        return eventually([&] {
            lease held = lock.acquire();
            const std::string id = held.id();
            if (held.release()) return false;
            subject->ping();
            return lock.acquire().id() == id;
        });
    }

    const mutex_options kept{.lease = longest_lease, .keep = 60s, .passes = 16};
};

TEST_P(KeptOnAMajority, AcquiringItAgainSendsNothingAndOthersGetItWhenTheyWantIt) {
    mutex lock{*subject, "stock", kept};
    mutex theirs{*other, "stock", terms()};
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(warm_up(lock));
        const auto before = calls();
        for (int n = 0; n < 500; ++n) {
            const lease held = lock.acquire();
            ASSERT_GT(held.token(), last);
            last = held.token();
        }
        EXPECT_LE(calls() - before, 3 * static_cast<std::int64_t>(servers.size())) << "renewals only";
        const lease held = theirs.try_acquire_for(an_age);
        ASSERT_TRUE(held);
        EXPECT_GT(held.token(), last);
        last = held.token();
        EXPECT_FALSE(lock.try_lock());
    }
}

TEST_P(KeptOnAMajority, AMinorityThatIsSilentHindersNobody) {
    mutex lock{*subject, "stock", kept};
    mutex theirs{*other, "stock", terms()};
    ASSERT_TRUE(warm_up(lock));
    for (std::size_t i = 0; i < minority(); ++i) servers[i].pause();
    for (int n = 0; n < 100; ++n) {
        const lease held = lock.acquire();
        ASSERT_TRUE(held);
    }
    EXPECT_TRUE(theirs.try_acquire_for(an_age));
    for (std::size_t i = 0; i < minority(); ++i) servers[i].resume();
    EXPECT_TRUE(lock.try_acquire_for(an_age));
}

TEST_P(KeptOnAMajority, WithoutAMajorityOfLinksLocalGrantsEndWithTheirProof) {
    mutex lock{*subject, "stock", kept};
    ASSERT_TRUE(warm_up(lock));
    lease held = lock.acquire();
    for (redis_server& each : servers) each.pause();
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, an_age));
    try {
        lock.try_lock_for(1ms);
        ADD_FAILURE() << "nothing proves the hold any more";
    } catch (const error& why) {
        EXPECT_EQ(why.condition(), errc::no_quorum);
    }
    for (redis_server& each : servers) each.resume();
    EXPECT_EQ(held.release(), errc::lost);
    EXPECT_TRUE(lock.try_acquire_for(an_age));
}

INSTANTIATE_TEST_SUITE_P(Servers, KeptOnAMajority, ::testing::Values(3U), with_so_many_servers);

}  // namespace
}  // namespace holdfast::testing::kept_places_test
