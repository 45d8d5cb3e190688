// A Cluster, a primary that sentinels watch over and a single server vote together: each is one of three.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"
#include "support/sentinel_set.hpp"

namespace holdfast::testing::cluster_quorum_test {
namespace {

using namespace std::chrono_literals;

std::vector<redis_server*> all_of(std::span<redis_server> servers) {
    std::vector<redis_server*> all;
    for (redis_server& each : servers) all.push_back(&each);
    return all;
}

TEST(ClusterQuorum, ThreeKindsOfServersVoteAndAnyTwoOfThemAreEnough) {
    redis_server single;
    sentinel_set sentinels;
    redis_cluster cluster{{.replicas = false}};
    const std::vector<std::string> urls{single.url(), sentinels.url(), cluster.url()};
    // Just started, they are not believed for as long as the longest lease. So long that nobody loses a lock who is
    // only slow: an update would be lost.
    constexpr auto lease_time = 8s;
    const client_options options{.max_lease = lease_time};
    std::vector<client> clients;
    for (int i = 0; i < 2; ++i) clients.emplace_back(urls, options);

    std::atomic<int> value = 0;  // read, then written: only the lock keeps updates
    std::atomic<int> rounds = 0;
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < 8; ++i) {
        running.emplace_back([&, i](const std::stop_token& stop) {
            mutex lock{clients[i % 2], "stock", {.lease = lease_time}};
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
                }
            }
        });
    }
    const auto goes_on = [&] {
        return eventually([&, before = rounds.load()] { return rounds >= before + 20; }, 2 * an_age);
    };
    EXPECT_TRUE(goes_on());
    cluster.move_slot("hf:{stock}", cluster.other_than_owner_of("hf:{stock}"));
    EXPECT_TRUE(goes_on()) << "after the slot has moved";
    // Each is away in turn, and comes back as it was: it need not be mistrusted.
    const auto goes_on_without = [&](const std::vector<redis_server*>& away) {
        for (redis_server* each : away) each->pause();
        const bool went_on = goes_on();
        for (redis_server* each : away) each->resume();
        return went_on;
    };
    EXPECT_TRUE(goes_on_without(all_of({&single, 1}))) << "with the sentinels' primary and the Cluster";
    std::vector<redis_server*> watched = all_of(sentinels.servers);
    std::ranges::copy(all_of(sentinels.sentinels), std::back_inserter(watched));
    EXPECT_TRUE(goes_on_without(watched)) << "with the single server and the Cluster";
    EXPECT_TRUE(goes_on_without(all_of(cluster.members))) << "with the single server and the sentinels' primary";
    EXPECT_TRUE(goes_on()) << "with all of them again";
    EXPECT_TRUE(cluster.owner_of("hf:{stock}").call({"EXISTS", "hf:{stock}:fence"}).integer == 1);
    for (std::jthread& each : running) each.request_stop();
    running.clear();
    EXPECT_EQ(value, rounds);
}

}  // namespace
}  // namespace holdfast::testing::cluster_quorum_test
