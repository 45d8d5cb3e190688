// Three servers, one of which has a clock that is hours off: it must not move the tickets, by which all wait: R42, R61.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "integration/quorum/quorum_fixture.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::wrong_clock_test {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds longest_lease = 900ms;

class WrongClock : public ::testing::TestWithParam<std::chrono::seconds> {
protected:
    WrongClock() {
        servers.emplace_back();
        servers.emplace_back(server_options{.clock_ahead = GetParam()});
        servers.emplace_back();
    }

    void SetUp() override {
        ASSERT_TRUE(eventually([&] { return std::all_of(servers.begin(), servers.end(), is_trusted); }, an_age));
    }

    static bool is_trusted(redis_server& which) {
        const std::chrono::seconds told{std::stoll(which.info("server", "uptime_in_seconds"))};
        return redis::least_uptime(told) >= longest_lease;
    }

    std::unique_ptr<client> make_client() {
        std::vector<std::string> urls;
        for (const redis_server& each : servers) urls.push_back(each.url() + "?timeout=5s");
        return std::make_unique<client>(urls, client_options{.max_lease = longest_lease});
    }
    /// Waits until the queue of every server has this length.
    [[nodiscard]] bool queue_has(std::int64_t waiters) {
        return eventually(
            [&] {
                return std::all_of(servers.begin(), servers.end(), [&](redis_server& each) {
                    return each.call({"ZCARD", "hf:{stock}:queue"}).integer == waiters;
                });
            },
            an_age);
    }

    std::vector<redis_server> servers;
};

// Clients that have used the lock for a while have seen tokens by that clock, on all servers.
TEST_P(WrongClock, OfOneServerDoesNotPutAnEarlierWaiterBehindALaterOne) {
    const auto one = make_client();
    const auto another = make_client();
    mutex ones{*one, "stock", {.lease = longest_lease}};
    mutex anothers{*another, "stock", {.lease = longest_lease}};
    for (int cycle = 0; cycle < 10; ++cycle) {
        ASSERT_FALSE(ones.acquire().release());
        ASSERT_FALSE(anothers.acquire().release());
    }
    std::atomic<int> served = 0;
    const auto wait_in_queue = [&](client& whose) {
        return in_background([&] {
            mutex lock{whose, "stock", {.lease = longest_lease}};
            const lease held = lock.acquire();
            return ++served;
        });
    };
    const auto newcomer = make_client();
    newcomer->ping();
    lease held = anothers.acquire();
    auto earlier = wait_in_queue(*one);
    ASSERT_TRUE(queue_has(1));
    auto later = wait_in_queue(*newcomer);
    ASSERT_TRUE(queue_has(2));
    ASSERT_FALSE(held.release());
    EXPECT_EQ(earlier.get(), 1);
    EXPECT_EQ(later.get(), 2);
}

INSTANTIATE_TEST_SUITE_P(Ahead, WrongClock, ::testing::Values(1h));
INSTANTIATE_TEST_SUITE_P(Behind, WrongClock, ::testing::Values(-1h));
INSTANTIATE_TEST_SUITE_P(SecondsAhead, WrongClock, ::testing::Values(5s));

}  // namespace
}  // namespace holdfast::testing::wrong_clock_test
