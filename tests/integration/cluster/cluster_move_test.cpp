// A slot moves from one primary to another while its locks are held, waited for and given back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/leftovers.hpp"
#include "support/redis_cluster.hpp"

namespace holdfast::testing::cluster_move_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

/// Raw names with one tag: several locks in the slot that moves.
class ClusterMove : public ::testing::Test {
protected:
    static inline const std::string mutex_name = "{stock}:mutex";
    static inline const std::string catalog_name = "{stock}:catalog";

    /// Those of the slot.
    std::vector<std::string> keys_at(redis_server& member) {
        std::vector<std::string> found;
        for (const redis_reply& key : member.call({"CLUSTER", "GETKEYSINSLOT", slot, "100"}).elements) {
            found.push_back(key.text);
        }
        return found;
    }

    redis_cluster cluster{{.replicas = false}};
    const std::string slot = std::to_string(cluster.members[0].call({"CLUSTER", "KEYSLOT", mutex_name}).integer);
    client subject{cluster.url()};
    client other{cluster.url()};
};

TEST_F(ClusterMove, FiftyMovesOfASlotUnder32WorkersLoseNoUpdateAndTellNoError) {
    constexpr int moves = 50;
    constexpr std::size_t workers = 32;
    std::atomic<int> value = 0;  // read, then written: only the lock keeps updates
    std::atomic<int> shared_value = 0;
    std::atomic<std::uint64_t> last_token = 0;
    std::vector<std::atomic<int>> rounds(workers);
    std::vector<std::jthread> running;
    const auto add_one = [](std::atomic<int>& what) {
        const int before = what.load();
        std::this_thread::yield();
        what.store(before + 1);
    };
    const auto one_round = [&](std::size_t i) {
        client& mine = i % 2 == 0 ? subject : other;
        if (i % 4 == 0) {
            shared_mutex catalog{mine, catalog_name, {.lease = 60s, .keys = keys::raw}};
            if (i % 8 != 0) {
                EXPECT_TRUE(catalog.try_acquire_shared_for(4 * an_age));
                return;
            }
            const lease got = catalog.try_acquire_for(4 * an_age);
            ASSERT_TRUE(got);
            add_one(shared_value);
        } else {
            mutex lock{mine, mutex_name, {.lease = 60s, .keys = keys::raw}};
            const lease got = lock.try_acquire_for(4 * an_age);
            ASSERT_TRUE(got);
            EXPECT_GT(got.token(), last_token.exchange(got.token()));
            add_one(value);
        }
    };
    for (std::size_t i = 0; i < workers; ++i) {
        running.emplace_back([&, i](const std::stop_token& stop) {
            while (!stop.stop_requested() && !HasFailure()) {
                try {
                    one_round(i);
                    ++rounds[i];
                } catch (const error& refused) {
                    ADD_FAILURE() << refused.what();
                }
            }
        });
    }
    for (int i = 0; i < moves && !HasFailure(); ++i) {
        const int before = value;
        const auto at = &cluster.owner_of(mutex_name) - cluster.members.data();
        cluster.move_slot(mutex_name, cluster.members[static_cast<std::size_t>(at + 1) % 3]);
        EXPECT_TRUE(eventually([&] { return value > before; }, 2 * an_age)) << "after move " << i;
    }
    for (std::jthread& each : running) each.request_stop();
    running.clear();
    int mutex_rounds = 0;
    int writer_rounds = 0;
    for (std::size_t i = 0; i < workers; ++i) {
        EXPECT_GT(rounds[i], 0);
        if (i % 4 != 0) mutex_rounds += rounds[i];
        if (i % 8 == 0) writer_rounds += rounds[i];
    }
    EXPECT_EQ(value, mutex_rounds);
    EXPECT_EQ(shared_value, writer_rounds);
    // The last releases may still be in flight, but none waits for the end of its lease.
    for (redis_server& each : cluster.members) {
        EXPECT_TRUE(eventually([&] { return leftovers(each).empty(); }, an_age)) << leftovers(each);
    }
}

// Its keys are on one side, some are on the other, all are: at each stage it lasts until everything was renewed.
TEST_F(ClusterMove, HoldersKeepWhatTheyHaveAcrossALongMove) {
    using steady = std::chrono::steady_clock;
    constexpr auto lease_time = 6s;
    const std::string written_name = "{stock}:written";
    mutex lock{subject, mutex_name, {.lease = lease_time, .keys = keys::raw}};
    shared_mutex catalog{subject, catalog_name, {.lease = lease_time, .keys = keys::raw}};
    shared_mutex written{subject, written_name, {.lease = lease_time, .keys = keys::raw}};
    lease holding = lock.acquire();
    lease reading = catalog.acquire_shared();
    lease writing = written.acquire();
    const std::vector<lease*> all{&holding, &reading, &writing};
    const auto expect_renewals = [&](const char* where) {
        const auto begin = steady::now();
        // What was proved before would end earlier.
        const auto is_renewed = [&](const lease* each) {
            return steady::now() + each->validity() > begin + lease_time;
        };
        EXPECT_TRUE(eventually([&] { return std::ranges::all_of(all, is_renewed); }, an_age)) << where;
        for (const lease* each : all) EXPECT_FALSE(each->lost().stop_requested()) << where;
    };
    redis_server& from = cluster.owner_of(mutex_name);
    redis_server& to = cluster.other_than_owner_of(mutex_name);
    const redis_cluster::move under_way = cluster.begin_move(mutex_name, to);
    expect_renewals("all at the old owner");
    std::vector<std::string> first = keys_at(from);
    std::erase_if(first, [&](const std::string& key) { return key.starts_with(written_name); });
    cluster.move_keys(under_way, first);
    EXPECT_THAT(keys_at(from), Contains(written_name));
    EXPECT_THAT(keys_at(to), IsSupersetOf({mutex_name, catalog_name}));
    expect_renewals("at both");
    while (cluster.move_keys(under_way, 10)) {
    }
    EXPECT_THAT(keys_at(to), IsSupersetOf({mutex_name, catalog_name, written_name}));
    expect_renewals("all at the new owner");
    cluster.finish_move(under_way);
    EXPECT_EQ(to.call({"GET", mutex_name}).text, holding.id());
    for (lease* each : all) {
        EXPECT_FALSE(each->renew());
        EXPECT_FALSE(each->release());
    }
}

TEST_F(ClusterMove, AReleaseDuringAMoveIsToldAtOnceAndServesTheQueueAfterwards) {
    mutex ours{subject, mutex_name, {.lease = 60s, .keys = keys::raw}};
    mutex theirs{other, mutex_name, {.lease = 60s, .keys = keys::raw}};
    lease held = ours.acquire();
    std::atomic<bool> served = false;
    const std::jthread waiting([&](const std::stop_token& giving_up) {
        EXPECT_TRUE(theirs.try_acquire_for(4 * an_age, {.stop = giving_up}));
        served = true;
    });
    redis_server& from = cluster.owner_of(mutex_name);
    redis_server& to = cluster.other_than_owner_of(mutex_name);
    ASSERT_TRUE(eventually([&] { return from.call({"EXISTS", "{stock}:mutex:queue"}).integer == 1; }, an_age));
    const redis_cluster::move under_way = cluster.begin_move(mutex_name, to);
    ASSERT_TRUE(cluster.move_keys(under_way, 1));  // whichever: now no side has all of them
    EXPECT_FALSE(held.release());
    EXPECT_THAT(keys_at(from), Not(Contains(mutex_name)));
    EXPECT_THAT(keys_at(to), Not(Contains(mutex_name)));
    EXPECT_FALSE(served);
    while (cluster.move_keys(under_way, 10)) {
    }
    cluster.finish_move(under_way);
    EXPECT_TRUE(eventually([&] { return served.load(); }, an_age));
}

TEST_F(ClusterMove, AMemberThatJoinsServesItsSlotsUntilItLeaves) {
    mutex lock{subject, mutex_name, {.lease = 60s, .keys = keys::raw}};
    mutex theirs{other, mutex_name, {.lease = 60s, .keys = keys::raw}};
    lease held = lock.acquire();
    redis_server& home = cluster.owner_of(mutex_name);
    redis_server& fresh = cluster.join_another();
    cluster.move_slot(mutex_name, fresh);
    EXPECT_FALSE(held.renew());
    EXPECT_EQ(fresh.call({"GET", mutex_name}).text, held.id());
    EXPECT_FALSE(held.release());
    lease next = theirs.try_acquire_for(an_age);
    ASSERT_TRUE(next);
    EXPECT_EQ(fresh.call({"GET", mutex_name}).text, next.id());
    cluster.move_slot(mutex_name, home);
    cluster.dismiss_last();
    EXPECT_FALSE(next.renew());
    EXPECT_FALSE(next.release());
    EXPECT_TRUE(lock.try_acquire_for(an_age));
}

/// Without other clients: they ask for the map, too, now and then.
class ClusterMap : public ::testing::Test {
protected:
    /// So many names in as many slots of that member.
    std::vector<std::string> names_at(const redis_server& member, std::size_t count) {
        std::map<std::int64_t, std::string> by_slot;
        for (int i = 0; by_slot.size() < count; ++i) {
            const std::string name = "shelf " + std::to_string(i);
            if (&cluster.owner_of(name) != &member) continue;
            by_slot.emplace(cluster.members[0].call({"CLUSTER", "KEYSLOT", name}).integer, name);
        }
        std::vector<std::string> names;
        for (const auto& [slot, name] : by_slot) names.push_back(name);
        return names;
    }
    /// They are all at the first member or at the second, and go to the other.
    void move_all(const std::vector<std::string>& names) {
        EXPECT_TRUE(cluster.have_all_heard(names.back()));
        redis_server& to = cluster.members[&cluster.owner_of(names.back()) == &cluster.members[0] ? 1 : 0];
        for (const std::string& name : names) cluster.move_slot(name, to);
    }
    std::int64_t times_asked() {
        std::int64_t count = 0;
        for (redis_server& each : cluster.members) count += each.command_calls("cluster|shards");
        return count;
    }

    redis_cluster cluster{{.replicas = false}};
};

// One question when the first is told that its slot has moved; and one more for those who are told so before it is
// answered, because the answer may be older than that.
TEST_F(ClusterMap, IsAskedForOnceAndNotByEverybodyWhoseSlotHasMoved) {
    constexpr auto asked_anyway_every = 10s;
    const std::vector<std::string> names = names_at(cluster.members[0], 64);
    std::unique_ptr<client> unaware;
    const auto all_move_unseen = [&] {
        unaware = std::make_unique<client>(cluster.url());
        unaware->ping();
        for (redis_server& each : cluster.members) each.reset_stats();
        move_all(names);
        return times_asked() == 0;
    };
    ASSERT_TRUE(eventually(all_move_unseen, an_age));
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<mutex>> locks;
    std::vector<std::future<lease>> wanted;
    for (const std::string& name : names) {
        locks.push_back(std::make_unique<mutex>(*unaware, name, mutex_options{.lease = 60s, .keys = keys::raw}));
        wanted.push_back(locks.back()->async_acquire(boost::asio::use_future));
    }
    for (std::future<lease>& each : wanted) EXPECT_TRUE(each.get());
    EXPECT_TRUE(eventually([&] { return times_asked() >= 1; }, an_age));
    const auto anyway = 1 + (std::chrono::steady_clock::now() - begin) / asked_anyway_every;
    EXPECT_LE(times_asked(), 2 + anyway);
}

}  // namespace
}  // namespace holdfast::testing::cluster_move_test
