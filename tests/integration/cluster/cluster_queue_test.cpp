// The queue of a lock whose slot moves keeps its order.
//
// One who has not listened again at the new owner when the lock is handed over may be passed over, because nobody could
// tell it; so the test waits until all have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"

namespace holdfast::testing::cluster_queue_test {
namespace {

using namespace std::chrono_literals;

class QueuedClusterMutex : public ::testing::Test {
protected:
    static constexpr std::size_t many = 8;
    static inline const std::string name = "stock";
    static inline const std::string key = "hf:{stock}";

    bool queue_has(std::size_t count) {
        return eventually(
            [&] {
                const redis_reply said = cluster.owner_of(key).call({"ZCARD", key + ":queue"});
                return said.integer == static_cast<std::int64_t>(count);
            },
            an_age);
    }
    // Each client has a channel of its own there.
    bool all_listen() {
        return eventually(
            [&] {
                return cluster.owner_of(key).call({"PUBSUB", "SHARDCHANNELS"}).elements.size() >= many;
            },
            an_age);
    }

    redis_cluster cluster{{.replicas = false}};
    client holder{cluster.url()};
    std::deque<client> waiting;
    std::mutex guard;
    std::vector<std::size_t> served;
    std::vector<std::jthread> threads;
};

TEST_F(QueuedClusterMutex, IsServedInOrderOfArrivalWhenTheSlotHasMovedThereAndBack) {
    lease held = mutex{holder, name, {.lease = 60s}}.acquire();
    std::vector<std::size_t> arrived;
    for (std::size_t i = 0; i < many; ++i) {
        waiting.emplace_back(cluster.url());
        threads.emplace_back([&, i, &mine = waiting.back()] {
            const lease got = mutex{mine, name, {.lease = 60s}}.try_acquire_for(4 * an_age);
            const std::lock_guard lock{guard};
            if (got) served.push_back(i);
        });
        ASSERT_TRUE(queue_has(i + 1));
        arrived.push_back(i);
    }
    redis_server& home = cluster.owner_of(key);
    for (redis_server* const to : {&cluster.other_than_owner_of(key), &home}) {
        cluster.move_slot(key, *to);
        ASSERT_TRUE(all_listen());
        ASSERT_TRUE(queue_has(many));
    }
    EXPECT_FALSE(held.release());
    threads.clear();
    EXPECT_EQ(served, arrived);
}

}  // namespace
}  // namespace holdfast::testing::cluster_queue_test
