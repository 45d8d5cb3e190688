// The number of commands that waiting in the queue costs, by the server's own count.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <iostream>
#include <set>
#include <sstream>

#include "chaos/chaos_fixture.hpp"

namespace holdfast::testing::command_count_test {
namespace {

class CommandCount : public chaos_fixture {
protected:
    /// Commands received over connections since reset_stats(): without those that only scripts run, and without those
    /// of the harness.
    std::int64_t from_clients() {
        const std::set<std::string> others = {"time",    "get",     "set",          "del",   "pttl",
                                              "pexpire", "exists",  "zcard",        "zadd",  "zrem",
                                              "zrange",  "hset",    "zscore",       "zrank", "hlen",
                                              "hget",    "hmget",   "hdel",         "hset",  "config|resetstat",
                                              "info",    "publish", "pubsub|numsub"};
        std::istringstream text(server.call({"INFO", "commandstats"}).text);
        std::int64_t sum = 0;
        for (std::string line; std::getline(text, line);) {
            const auto name_end = line.find(":calls=");
            if (!line.starts_with("cmdstat_") || name_end == std::string::npos) continue;
            const std::string name = line.substr(8, name_end - 8);
            if (!others.contains(name)) sum += std::stoll(line.substr(name_end + 7));
        }
        return sum;
    }

    double commands_per_cycle(std::size_t processes, std::size_t threads, std::size_t cycles) {
        std::vector<worker> workers;
        for (std::size_t started = 0; started < processes; ++started) {
            workers.emplace_back(std::vector<std::string>{"cycle", patient_url(), "wanted", std::to_string(threads),
                                                          std::to_string(cycles)});
        }
        for (worker& each : workers) each.wait_for("ready");
        server.reset_stats();
        for (worker& each : workers) each.process().close_input();
        for (worker& each : workers) EXPECT_EQ(each.process().wait(an_age), went_well) << each.process().errors();
        const double per_cycle =
            static_cast<double>(from_clients()) / static_cast<double>(processes * threads * cycles);
        std::cout << "commands per cycle: " << per_cycle << '\n';
        return per_cycle;
    }
};

TEST_F(CommandCount, OfAContendedCycleIsTwoWith16Waiters) {
    const double per_cycle = commands_per_cycle(4, 4, 100);
    EXPECT_GE(per_cycle, 2.0);
    EXPECT_LE(per_cycle, 2.05);
}

TEST_F(CommandCount, OfAContendedCycleIsTwoWith500WaitersOf5Processes) {
    const double per_cycle = commands_per_cycle(5, 100, 5);
    EXPECT_GE(per_cycle, 2.0);
    EXPECT_LE(per_cycle, 2.05);
}

TEST_F(CommandCount, OfALongWaitIsItsPolls) {
    using namespace std::chrono_literals;
    client holding{server.url()};
    client waiting{server.url()};
    mutex held{holding, "wanted", {.lease = 30s, .renew = false}};
    mutex wanted{waiting, "wanted", {.lease = 3s}};
    holding.ping();
    waiting.ping();
    lease first = held.acquire();
    server.reset_stats();
    const auto scripts = [&] { return server.command_calls("evalsha") + server.command_calls("eval"); };
    const auto began = std::chrono::steady_clock::now();
    std::jthread waiter{[&] { wanted.acquire().release(); }};
    EXPECT_TRUE(eventually([&] { return scripts() >= 1 + 3; }, 30s)) << "a request, then a poll per second (lease/3)";
    first.release();
    waiter.join();
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - began).count();
    EXPECT_LE(scripts(), 2 + 1 + seconds) << "two releases besides";
}

}  // namespace
}  // namespace holdfast::testing::command_count_test
