// Three or five independent servers, each behind a proxy, and clients of all of them.
//
// A server that was started a short while ago does not vote for max_lease, so that is short here, and the tests begin
// when it is over.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "integration/refusal.hpp"
#include "redis/session/greeting.hpp"
#include "support/eventually.hpp"
#include "support/in_background.hpp"
#include "support/leftovers.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing {

using namespace std::chrono_literals;

class quorum_fixture : public ::testing::TestWithParam<std::size_t> {
protected:
    // A server tells its uptime in whole seconds, and up to one too many: at "5" it has been up for this long.
    static constexpr milliseconds longest_lease = 3900ms;

    quorum_fixture() {
        for (std::size_t i = 0; i < GetParam(); ++i) {
            servers.emplace_back();
            proxies.emplace_back(servers.back().port());
        }
    }

    void SetUp() override {
        ASSERT_TRUE(all_vote());
        subject = make_client();
        other = make_client();
        warm_up(*subject);
        warm_up(*other);
    }

    /// Every test ends with servers on which nothing is left.
    void TearDown() override {
        for (redis_server& each : servers) {
            if (!each.running()) continue;
            each.resume();
            EXPECT_TRUE(eventually([&] { return leftovers(each).empty(); }, an_age)) << leftovers(each);
        }
    }

    std::unique_ptr<client> make_client(client_options options = {}) {
        std::vector<std::string> urls;
        for (const tcp_proxy& each : proxies) urls.push_back(each.url() + "?timeout=5s");
        options.max_lease = longest_lease;
        return std::make_unique<client>(urls, std::move(options));
    }

    /// After this every server knows every script, and the client is connected to all of them.
    static void warm_up(client& whose) {
        mutex warm{whose, "warm", {.lease = longest_lease}};
        lease held = warm.acquire();
        EXPECT_FALSE(held.renew());
        EXPECT_FALSE(held.release());
        shared_mutex warm_too{whose, "warm too", {.lease = longest_lease}};
        lease reading = warm_too.acquire_shared();
        EXPECT_FALSE(reading.renew());
        reading.upgrade().downgrade();
        EXPECT_FALSE(reading.release());
    }

    [[nodiscard]] bool votes(redis_server& which) {
        const std::chrono::seconds told{std::stoll(which.info("server", "uptime_in_seconds"))};
        return redis::least_uptime(told) >= longest_lease;
    }
    [[nodiscard]] bool all_vote() {
        return eventually(
            [this] { return std::all_of(servers.begin(), servers.end(), [this](auto& s) { return votes(s); }); },
            an_age);
    }

    std::size_t minority() const { return (servers.size() - 1) / 2; }
    std::size_t majority() const { return servers.size() / 2 + 1; }

    /// How many servers have that hold on the mutex.
    std::size_t holders_of(const std::string& id) {
        return static_cast<std::size_t>(std::count_if(servers.begin(), servers.end(), [&](redis_server& each) {
            return each.running() && each.call({"GET", key}).text == id;
        }));
    }
    std::size_t free_ones() {
        return static_cast<std::size_t>(std::count_if(servers.begin(), servers.end(), [&](redis_server& each) {
            return each.running() && each.call({"EXISTS", key}).integer == 0;
        }));
    }
    std::int64_t line_at(redis_server& which) { return which.call({"ZCARD", key + ":queue"}).integer; }
    [[nodiscard]] bool queue_has(std::int64_t waiters) {
        return eventually([&] {
            return std::all_of(servers.begin(), servers.end(), [&](redis_server& s) { return line_at(s) == waiters; });
        });
    }

    mutex_options terms(milliseconds lease = longest_lease) { return {.lease = lease}; }

    const std::string key = "hf:{stock}";
    std::vector<redis_server> servers;
    std::vector<tcp_proxy> proxies;
    std::unique_ptr<client> subject;
    std::unique_ptr<client> other;
};

inline std::string with_so_many_servers(const ::testing::TestParamInfo<std::size_t>& info) {
    return "On" + std::to_string(info.param) + "Servers";
}

#define HOLDFAST_ON_THREE_AND_FIVE(suite) \
    INSTANTIATE_TEST_SUITE_P(Servers, suite, ::testing::Values(3U, 5U), with_so_many_servers)

}  // namespace holdfast::testing
