// Twelve processes on three and on five servers, a minority of which is killed, stopped or restarted empty at a time:
// R40 to R46. Short by default; HOLDFAST_CHAOS_SECONDS makes it longer.
#include <gtest/gtest.h>

#include <signal.h>
#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "chaos/beliefs.hpp"
#include "chaos/chaos_fixture.hpp"
#include "redis/session/greeting.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::quorum_test {
namespace {

using namespace std::chrono_literals;

class SeveralServers : public ::testing::TestWithParam<std::size_t> {
protected:
    static constexpr std::chrono::milliseconds longest_lease = 1500ms;

    void SetUp() override {
        for (std::size_t i = 0; i < GetParam(); ++i) servers.emplace_back();
        for (redis_server& each : servers) ASSERT_TRUE(votes_again(each));
        std::ofstream(path) << "0 0\n";
    }

    void TearDown() override {
        for (redis_server& each : servers) {
            EXPECT_TRUE(eventually([&] { return leftovers(each).empty(); }, 40s)) << "left behind:" << leftovers(each);
        }
    }

    void start_worker() {
        std::string urls;
        for (const redis_server& each : servers) urls += (urls.empty() ? "" : " ") + each.url() + "?timeout=500ms";
        workers.emplace_back(
            std::vector<std::string>{"lock-set", urls, "stock", path, std::to_string(longest_lease.count())});
    }

    [[nodiscard]] static bool votes_again(redis_server& which) {
        const auto told = [&] { return std::chrono::seconds(std::stoll(which.info("server", "uptime_in_seconds"))); };
        return eventually([&] { return redis::least_uptime(told()) >= longest_lease; }, an_age);
    }

    std::int64_t counted() const {
        std::int64_t count = 0;
        std::ifstream(path) >> count;
        return count;
    }
    [[nodiscard]] bool goes_on() const {
        const auto before = counted();
        return eventually([&] { return counted() > before + 3; }, an_age);
    }

    /// Disturbs a minority; its servers are back when this returns.
    void something_happens() {
        std::vector<std::size_t> order(servers.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::shuffle(order.begin(), order.end(), chance);
        const std::size_t victims = 1 + chance() % ((servers.size() - 1) / 2);
        const auto kind = chance() % 3;
        for (std::size_t i = 0; i < victims; ++i) {
            redis_server& victim = servers[order[i]];
            kind == 0 ? victim.pause() : kind == 1 ? victim.kill() : victim.restart(redis_server::data::lose);
        }
        EXPECT_TRUE(goes_on()) << "with " << victims << (kind == 0 ? " stopped" : kind == 1 ? " killed" : " restarted");
        for (std::size_t i = 0; i < victims; ++i) {
            redis_server& victim = servers[order[i]];
            if (kind == 0) victim.resume();
            if (kind == 1) victim.restart(redis_server::data::lose);
        }
        // A server that lost its data counts as absent until it votes again.
        for (std::size_t i = 0; i < victims && kind != 0; ++i) EXPECT_TRUE(votes_again(servers[order[i]]));
        EXPECT_TRUE(goes_on()) << "afterwards";
        ++faults;
    }

    std::int64_t updates() { return updates_of(workers); }
    std::vector<interval> beliefs() const { return beliefs_of(workers); }

    temp_directory directory;
    std::string path = directory.path() / "store";
    std::vector<redis_server> servers;
    std::vector<worker> workers;
    std::mt19937 chance{std::random_device{}()};
    int faults = 0;
};

INSTANTIATE_TEST_SUITE_P(Servers, SeveralServers, ::testing::Values(3U, 5U),
                         [](const auto& of) { return "On" + std::to_string(of.param); });

// R40, R41, R43, R44, R45
TEST_P(SeveralServers, LoseNoUpdateAndNeverHaveTwoHoldersWhileAMinorityFails) {
    for (int i = 0; i < 12; ++i) start_worker();
    ASSERT_TRUE(goes_on());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{std::stol(seconds_to_run("10"))};
    while (std::chrono::steady_clock::now() < end && !HasFailure()) something_happens();
    const auto done = updates();
    const auto all = beliefs();
    std::cout << "faults: " << faults << ", updates: " << done << '\n';
    EXPECT_EQ(counted(), done);
    for (std::size_t i = 1; i < all.size(); ++i) {
        EXPECT_GT(all[i].from_us, all[i - 1].to_us)
            << "two holders, tokens " << all[i - 1].token << ' ' << all[i].token;
        EXPECT_GT(all[i].token, all[i - 1].token);
    }
}

// R46
TEST_P(SeveralServers, AKilledHolderIsReplacedWhenItsLeaseEnds) {
    start_worker();
    ASSERT_TRUE(goes_on());
    workers[0].signal(SIGKILL);
    const auto before = counted();
    start_worker();
    EXPECT_TRUE(eventually([&] { return counted() > before + 3; }, an_age));
    workers[1].process().close_input();
    EXPECT_EQ(workers[1].finish(), went_well);
}

}  // namespace
}  // namespace holdfast::testing::quorum_test
