// A Cluster is one place for locks: every name is kept by the member that owns its slot, wherever that is by now.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/leftovers.hpp"
#include "support/redis_cluster.hpp"
#include "support/sockets.hpp"

namespace holdfast::testing::cluster_test {
namespace {

using namespace std::chrono_literals;

std::string key_of(const std::string& name) {
    return "hf:{" + name + "}";
}

/// Links of clients that call themselves so.
std::size_t links_at(redis_server& server, const std::string& client_name) {
    const std::string list = server.call({"CLIENT", "LIST"}).text;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = list.find("name=" + client_name + " ", at)) != std::string::npos; ++at) ++count;
    return count;
}

/// Names that all have slots of different primaries.
std::vector<std::string> one_name_per_primary(redis_cluster& cluster) {
    std::vector<std::string> names;
    std::set<const redis_server*> owners;
    for (int i = 0; owners.size() < 3; ++i) {
        const std::string name = "shelf " + std::to_string(i);
        if (owners.insert(&cluster.owner_of(key_of(name))).second) names.push_back(name);
    }
    return names;
}

TEST(Cluster, AllKindsOfLocksAreKeptByTheOwnersOfTheirSlotsOverOneLinkEach) {
    redis_cluster cluster;
    const std::vector<std::string> names = one_name_per_primary(cluster);
    {
        client subject{cluster.url() + "?client_name=subject"};
        subject.ping();
        EXPECT_EQ(subject.server(), cluster.url());
        for (const std::string& name : names) {
            mutex lock{subject, name};
            lease held = lock.acquire();
            EXPECT_EQ(cluster.owner_of(key_of(name)).call({"GET", key_of(name)}).text, held.id());
            EXPECT_FALSE(held.renew());
            EXPECT_FALSE(held.release());
        }
        shared_mutex catalog{subject, "catalog"};
        {
            lease reading = catalog.acquire_shared();
            reading.upgrade().downgrade();
        }
        striped_shared_mutex striped{subject, "striped", 16};
        EXPECT_TRUE(striped.try_acquire());
        mutex another{subject, "another"};
        EXPECT_TRUE(another.async_acquire(boost::asio::use_future).get());
        mutex stock{subject, names[0]};
        { const lock_all both{stock, catalog}; }
        std::vector<std::size_t> links;
        const auto one_each = [&] {
            links.clear();
            for (redis_server& each : cluster.members) links.push_back(links_at(each, "subject"));
            return links == std::vector<std::size_t>{1, 1, 1, 0, 0, 0};
        };
        EXPECT_TRUE(eventually(one_each, an_age)) << ::testing::PrintToString(links);
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(leftovers(cluster.members[static_cast<std::size_t>(i)]), "");
}

// R12: the first waiter is told and need not poll: polls come only after ten seconds.
TEST(Cluster, WaitersAreWokenByAPushAtWhicheverPrimary) {
    redis_cluster cluster{{.replicas = false}};
    client subject{cluster.url()};
    client other{cluster.url()};
    for (const std::string& name : one_name_per_primary(cluster)) {
        redis_server& owner = cluster.owner_of(key_of(name));
        mutex ours{subject, name, {.lease = 60s}};
        mutex theirs{other, name, {.lease = 60s}};
        lease held = ours.acquire();
        std::atomic<bool> served = false;
        const std::jthread waiting([&] {
            const lease got = theirs.try_acquire_for(an_age);
            EXPECT_TRUE(got);
            served = true;
        });
        EXPECT_TRUE(eventually([&] { return owner.call({"ZCARD", key_of(name) + ":queue"}).integer == 1; }, an_age));
        owner.reset_stats();
        held.release();
        EXPECT_TRUE(eventually([&] { return served.load(); }, an_age));
        EXPECT_LE(owner.command_calls("evalsha"), 2) << "one release, one more release";
        EXPECT_EQ(owner.command_calls("publish"), 0) << "that would go to every member";
    }
}

TEST(Cluster, ASlotThatHasMovedIsFoundAndTheMapIsAskedForOnce) {
    redis_cluster cluster{{.replicas = false}};
    client subject{cluster.url()};
    mutex lock{subject, "stock", {.lease = 60s}};
    lease held = lock.acquire();
    redis_server& to = cluster.other_than_owner_of(key_of("stock"));
    cluster.move_slot(key_of("stock"), to);
    for (redis_server& each : cluster.members) each.reset_stats();
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(held.renew());
    EXPECT_EQ(to.call({"GET", key_of("stock")}).text, held.id());
    std::int64_t asked = 0;
    for (redis_server& each : cluster.members) asked += each.command_calls("cluster|shards");
    EXPECT_LE(asked, 3) << "once because it was refused, and now and then";
    EXPECT_FALSE(held.release());
}

// Who is asked for the map may be the one: then it sends us to the former owner again, who knows better.
TEST(Cluster, AMemberThatHasNotHeardOfAMoveMisleadsNobody) {
    redis_cluster cluster{{.replicas = false}};
    client subject{cluster.url()};
    mutex lock{subject, "stock", {.lease = 60s}};
    lease held = lock.acquire();
    for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(cluster.have_all_heard(key_of("stock")));
        redis_server& from = cluster.owner_of(key_of("stock"));
        const auto next = static_cast<std::size_t>(&from - cluster.members.data() + 1) % cluster.members.size();
        const redis_cluster::move under_way = cluster.begin_move(key_of("stock"), cluster.members[next]);
        while (cluster.move_keys(under_way, 10)) {
        }
        cluster.finish_move(under_way, redis_cluster::told::both_sides);
        for (int j = 0; j < 10; ++j) EXPECT_FALSE(held.renew());
    }
    EXPECT_FALSE(held.release());
}

TEST(Cluster, AFailoverByHandIsFollowed) {
    redis_cluster cluster;
    client subject{cluster.url()};
    client other{cluster.url()};
    mutex ours{subject, "stock", {.lease = 60s}};
    mutex theirs{other, "stock", {.lease = 60s}};
    lease held = ours.acquire();
    std::atomic<bool> served = false;
    const std::jthread waiting([&] {
        const lease got = theirs.try_acquire_for(an_age);
        EXPECT_TRUE(got);
        served = true;
    });
    const std::string queue = key_of("stock") + ":queue";
    EXPECT_TRUE(eventually(
        [&] {
            return cluster.owner_of(key_of("stock")).call({"ZCARD", queue}).integer == 1;
        },
        an_age));
    EXPECT_TRUE(cluster.fail_over(key_of("stock")));
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(eventually([&] { return served.load(); }, an_age));
}

TEST(Cluster, WhatIsNoClusterOrTooOldIsToldClearly) {
    redis_server alone;
    expect_client_refused(errc::bad_topology, "redis+cluster://" + at_port(alone.port()), at_port(alone.port()));
    redis_server member{{.config = {"cluster-enabled yes"}}};
    expect_client_refused(errc::bad_topology, member.url(), "use redis+cluster://");
    expect_client_refused(errc::cluster_down, "redis+cluster://" + at_port(member.port()), at_port(member.port()));
    misbehaving_server old{behaviours::after_hello(&answers::nothing, {.version = "6.2.14", .mode = "cluster"})};
    expect_client_refused(errc::too_old, "redis+cluster://" + at_port(old.port()), "must be 7.0 or later");
    const reserved_port nobody = reserve_port();
    expect_client_refused(errc::connection_refused, "redis+cluster://" + at_port(nobody.port), at_port(nobody.port));
}

}  // namespace
}  // namespace holdfast::testing::cluster_test
