// What a client counts by the name of the lock, and what it traces.
#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/shared_mutex.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::named_figures_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

TEST(NamedFigures, GaugesFollowWaitersAndHolders) {
    const redis_server server;
    client_options options;
    options.metrics = std::make_shared<metrics>();
    const metrics& all = *options.metrics;
    client redis{server.url(), options};
    holdfast::mutex stock{redis, "stock"};
    const lock_metrics& figures = options.metrics->by_name.of("stock");
    lease first = stock.acquire();
    EXPECT_EQ(figures.held, 1);
    EXPECT_EQ(figures.waiting, 0);
    EXPECT_FALSE(stock.try_acquire());
    EXPECT_EQ(figures.refused, 1U);
    EXPECT_EQ(figures.waiting, 0);
    std::jthread waiter([&stock] { const lease second = stock.acquire(); });
    EXPECT_TRUE(eventually([&] { return figures.waiting == 1; }));
    first.release();
    waiter.join();
    EXPECT_TRUE(eventually([&] { return figures.held == 0; }));
    EXPECT_EQ(figures.waiting, 0);
    EXPECT_EQ(figures.acquired, 2U);
    EXPECT_EQ(figures.handed_over, 1U);
    EXPECT_EQ(figures.acquire_wait.read().count, 2U);
    EXPECT_EQ(figures.hold_time.read().count, 2U);
    EXPECT_EQ(all.waiting, 0);
    EXPECT_EQ(all.held, 0);
}

TEST(NamedFigures, UpgradeWaitsButIsNoSecondHold) {
    const redis_server server;
    client_options options;
    options.metrics = std::make_shared<metrics>();
    client redis{server.url(), options};
    shared_mutex catalog{redis, "catalog"};
    const lock_metrics& figures = options.metrics->by_name.of("catalog");
    lease reader = catalog.acquire_shared();
    {
        lease other = catalog.acquire_shared();
        EXPECT_EQ(figures.held, 2);
        EXPECT_FALSE(reader.try_upgrade_for(1ms));
        EXPECT_EQ(figures.waiting, 0);
    }
    const lease writer = reader.upgrade();
    EXPECT_EQ(figures.held, 1);
    EXPECT_EQ(figures.waiting, 0);
    EXPECT_EQ(figures.acquired, 3U);
    EXPECT_EQ(figures.refused, 1U);
}

TEST(NamedFigures, AllEventsAreDeliveredBeforeTheClientIsGone) {
    const redis_server server;
    std::mutex mutex;
    std::vector<std::string> events;
    std::string hold;
    {
        client_options options;
        options.trace = [&](const trace_event& event) {
            const std::lock_guard guard(mutex);
            events.push_back(std::string(name_of(event.what)) + " " + event.lock);
            EXPECT_LE(event.begin, event.end);
            EXPECT_TRUE(hold.empty() || hold == event.hold);
            hold = event.hold;
        };
        client redis{server.url(), options};
        holdfast::mutex stock{redis, "stock"};
        lease mine = stock.acquire();
        mine.renew();
    }
    EXPECT_THAT(events, ElementsAre("acquire stock", "renew stock", "hold stock"));
}

}  // namespace
}  // namespace holdfast::testing::named_figures_test
