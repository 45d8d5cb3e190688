// The queue of a mutex on a real server: order, hand-over, and cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "support/eventually.hpp"
#include "support/leftovers.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::mutex_queue_test {
namespace {

using namespace std::chrono_literals;

const std::string key = "hf:{stock}";

std::int64_t in_queue(redis_server& server) {
    return server.call({"ZCARD", key + ":queue"}).integer;
}

void expect_nothing_left(redis_server& server) {
    EXPECT_TRUE(eventually([&] { return leftovers(server).empty(); })) << leftovers(server);
}

// R10
TEST(QueuedMutex, ServesInOrderOfArrivalAcrossClients) {
    redis_server server;
    client first_holder{server.url()};
    mutex lock{first_holder, "stock"};
    lease held = lock.acquire();
    std::mutex guard;
    std::vector<int> served;
    std::vector<std::thread> waiting;
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i < 6; ++i) {
        if (i % 2 == 0) clients.push_back(std::make_unique<client>(server.url()));
        waiting.emplace_back([&, i, from = clients.back().get()] {
            mutex own{*from, "stock"};
            const lease mine = own.acquire();
            EXPECT_EQ(server.call({"GET", key}).text, mine.id());
            const std::lock_guard writing{guard};
            served.push_back(i);
        });
        ASSERT_TRUE(eventually([&] { return in_queue(server) == i + 1; }));
    }
    EXPECT_FALSE(lock.try_acquire());
    held.release();
    EXPECT_FALSE(lock.try_acquire_for(0ms)) << "a newcomer never overtakes";
    for (std::thread& each : waiting) each.join();
    EXPECT_THAT(served, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
    expect_nothing_left(server);
}

TEST(QueuedMutex, TheGrantIsMadeInsideOfTheRelease) {
    redis_server server;
    client holder{server.url()};
    client waiter{server.url()};
    mutex theirs{holder, "stock"};
    mutex ours{waiter, "stock"};
    lease held = theirs.acquire();
    lease got;
    std::thread waiting([&] { got = ours.acquire(); });
    ASSERT_TRUE(eventually([&] { return in_queue(server) == 1; }));
    held.release();
    EXPECT_EQ(server.call({"EXISTS", key}).integer, 1) << "never free in between";
    waiting.join();
    EXPECT_EQ(server.call({"GET", key}).text, got.id());
    EXPECT_GT(got.validity(), 0ms);
    EXPECT_FALSE(got.renew());
}

TEST(QueuedMutex, AWaiterThatGaveUpDoesNotSwallowTheGrant) {
    redis_server server;
    client holder{server.url()};
    client impatient{server.url()};
    client patient{server.url()};
    mutex lock{holder, "stock"};
    lease held = lock.acquire();
    std::stop_source stop;
    std::thread gives_up([&] {
        mutex own{impatient, "stock"};
        EXPECT_THROW(own.acquire({.stop = stop.get_token()}), error);
    });
    ASSERT_TRUE(eventually([&] { return in_queue(server) == 1; }));
    std::thread waits([&] {
        mutex own{patient, "stock"};
        EXPECT_TRUE(own.acquire());
    });
    ASSERT_TRUE(eventually([&] { return in_queue(server) == 2; }));
    stop.request_stop();
    gives_up.join();
    held.release();
    waits.join();
    expect_nothing_left(server);
}

TEST(QueuedMutex, AHolderThatDiedIsFoundOutWhenItsLeaseEnds) {
    redis_server server;
    client subject{server.url()};
    mutex lock{subject, "stock"};
    server.call({"SET", key, "hf_0123456789abcdef.1.0123456789abcdef012345", "PX", "300"});
    EXPECT_TRUE(lock.acquire());
}

// A cycle is two commands: acquire and release.
TEST(QueuedMutex, AnUncontendedCycleCostsTwoCommands) {
    redis_server server;
    client subject{server.url()};
    mutex lock{subject, "stock"};
    lock.lock();
    lock.unlock();
    subject.ping();
    server.reset_stats();
    constexpr int cycles = 50;
    for (int i = 0; i < cycles; ++i) {
        lock.lock();
        lock.unlock();
    }
    subject.ping();  // behind the last of them, on the same link
    EXPECT_EQ(server.command_calls("evalsha"), 2 * cycles);
    EXPECT_EQ(server.command_calls("eval"), 0);
    EXPECT_EQ(server.command_calls("subscribe"), 0);
    expect_nothing_left(server);
}

TEST(QueuedMutex, AContendedCycleCostsTwoCommandsTooWith16Waiters) {
    redis_server server;
    client one{server.url()};
    client two{server.url()};
    for (client* each : {&one, &two}) {  // scripts loaded, channels subscribed
        mutex warm_up{*each, "stock"};
        warm_up.lock();
        warm_up.unlock();
    }
    mutex gate{one, "stock"};
    lease held = gate.acquire();
    constexpr int waiters = 16;
    constexpr int cycles = 10;
    std::atomic<int> inside = 0;
    std::atomic<bool> two_inside = false;
    std::vector<std::thread> running;
    server.reset_stats();
    for (int t = 0; t < waiters; ++t) {
        running.emplace_back([&, t] {
            mutex own{t % 2 == 0 ? one : two, "stock", {.lease = 60s}};
            for (int i = 0; i < cycles; ++i) {
                const lease mine = own.acquire();
                if (inside.fetch_add(1) != 0) two_inside = true;
                inside.fetch_sub(1);
            }
        });
    }
    ASSERT_TRUE(eventually([&] { return in_queue(server) == waiters; }));
    held.release();
    for (std::thread& each : running) each.join();
    for (client* each : {&one, &two}) each->ping();  // behind the last releases, on the same links
    EXPECT_FALSE(two_inside);
    // One more for the release of the first holder; a slow machine may see a few polls on top.
    EXPECT_GE(server.command_calls("evalsha"), 2 * waiters * cycles + 1);
    EXPECT_LE(server.command_calls("evalsha"), 2 * waiters * cycles + 1 + waiters);
    expect_nothing_left(server);
}

}  // namespace
}  // namespace holdfast::testing::mutex_queue_test
