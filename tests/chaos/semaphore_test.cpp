// Processes that take permits of a semaphore and are killed while they have them: R53. Short by default;
// HOLDFAST_CHAOS_SECONDS makes it longer.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "chaos/chaos_fixture.hpp"

namespace holdfast::testing::semaphore_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t limit = 5;
constexpr auto lease_time = 1000ms;

/// What one hold was believed in: from the first to the last time at which its worker asked.
struct seen_hold {
    std::int64_t from_us = 0;
    std::int64_t to_us = 0;
    std::int64_t permits = 0;
};

std::vector<seen_hold> holds_of(const worker& one) {
    std::map<std::string, seen_hold> all;
    for (const told_line& line : one.lines("believes")) {
        const std::int64_t at = to_number(line.at(2));
        seen_hold& hold = all.try_emplace(line.at(1), seen_hold{at, at, to_number(line.at(3))}).first->second;
        hold.to_us = std::max(hold.to_us, at);
    }
    std::vector<seen_hold> found;
    for (const auto& [name, hold] : all) found.push_back(hold);
    return found;
}

std::int64_t most_at_a_time(const std::vector<seen_hold>& all) {
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;
    for (const seen_hold& one : all) {
        changes.emplace_back(one.from_us, one.permits);
        changes.emplace_back(one.to_us + 1, -one.permits);
    }
    std::ranges::sort(changes);
    std::int64_t sum = 0;
    std::int64_t most = 0;
    for (const auto& [at, by] : changes) most = std::max(most, sum += by);
    return most;
}

class Permits : public chaos_fixture {
protected:
    worker taker() {
        return worker{
            {"permits", patient_url(), "pool", std::to_string(limit), std::to_string(lease_time.count()), "3"}};
    }
};

TEST_F(Permits, AreNeverMoreThanTheLimitAndNoneIsLostForLongerThanALease) {
    constexpr std::size_t processes = 4;
    std::vector<worker> running;
    for (std::size_t i = 0; i < processes; ++i) running.push_back(taker());
    std::vector<seen_hold> all;
    std::size_t killed = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{std::stoi(seconds_to_run("4"))};
    while (std::chrono::steady_clock::now() < end) {
        worker& victim = running[killed % processes];
        victim.wait_for("believes");
        std::this_thread::sleep_for(100ms);
        victim.signal(SIGKILL);
        victim.process().wait(an_age);
        for (const seen_hold& one : holds_of(victim)) all.push_back(one);
        victim = taker();
        ++killed;
    }
    for (worker& each : running) {
        each.signal(SIGKILL);
        each.process().wait(an_age);
        for (const seen_hold& one : holds_of(each)) all.push_back(one);
    }
    // All permits come back, with the leases of the dead.
    client subject{server.url()};
    semaphore pool{subject, "pool", static_cast<std::size_t>(limit)};
    EXPECT_TRUE(pool.try_acquire_for(an_age, static_cast<std::size_t>(limit)));
    EXPECT_TRUE(eventually([&] { return pool.available() == static_cast<std::size_t>(limit); }, an_age));
    std::cout << all.size() << " holds, " << killed << " killed, at most " << most_at_a_time(all) << " permits out\n";
    EXPECT_GT(killed, 0U);
    EXPECT_GT(all.size(), 20U);
    EXPECT_LE(most_at_a_time(all), limit);
    EXPECT_GE(most_at_a_time(all), limit - 1) << "hardly anybody was there at a time";
}

}  // namespace
}  // namespace holdfast::testing::semaphore_test
