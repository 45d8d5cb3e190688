// The server is killed and restarted while clients hold and wait: R44, R45.
//
// Two groups of clients: each client has a counterpart in the other group with a lock of the same name. So at any time
// half of them hold and half of them wait. Each reports the intervals in which it believed in a hold. These intervals,
// by the machine's one clock, must not overlap for the same name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include <holdfast/holdfast.hpp>

#include "chaos/chaos_fixture.hpp"

namespace holdfast::testing::restart_test {
namespace {

using ::testing::IsEmpty;

// The number of holders, and of waiters. Every client has its own threads, which are expensive under a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t locks = 25;
#else
constexpr std::size_t locks = 50;
#endif

struct belief {
    std::int64_t from_us = 0;
    std::int64_t to_us = 0;
    std::int64_t token = 0;
};

using beliefs = std::map<std::string, std::vector<belief>>;  // by name, sorted by their beginning

class client_groups {
public:
    struct kind {
        std::string lease_ms = "1500";
        std::string max_lease_ms = "60000";
        std::string trust = "trusted";
        std::string hold_ms = "400";
    };

    client_groups(const redis_server& server, const kind& of) {
        for (int count = 0; count < 2; ++count) {
            workers_.emplace_back(std::vector<std::string>{"crowd", server.url(), "lock-", std::to_string(locks),
                                                           of.lease_ms, of.max_lease_ms, of.trust, of.hold_ms});
        }
    }

    /// True if every lock has been acquired after that time.
    bool all_served_since(std::int64_t time_us) const {
        const beliefs all = collect();
        return all.size() == locks && std::all_of(all.begin(), all.end(), [&](const auto& of_name) {
                   return of_name.second.back().from_us > time_us;
               });
    }

    beliefs collect() const {
        beliefs all;
        for (const worker& each : workers_) {
            for (const told_line& line : each.lines("interval")) {
                all[line.at(1)].push_back({to_number(line.at(2)), to_number(line.at(3)), to_number(line.at(4))});
            }
        }
        for (auto& [name, held] : all) {
            std::sort(held.begin(), held.end(),
                      [](const belief& left, const belief& right) { return left.from_us < right.from_us; });
        }
        return all;
    }

    std::size_t errors_told() const {
        std::size_t sum = 0;
        for (const worker& each : workers_) sum += each.lines("told").size();
        return sum;
    }

    /// No client hangs: all end when asked to.
    void finish() {
        for (worker& each : workers_) each.process().close_input();
        for (worker& each : workers_) EXPECT_EQ(each.finish(), went_well) << each.process().errors();
    }

private:
    std::vector<worker> workers_;
};

/// Describes every overlap of two beliefs.
std::vector<std::string> overlaps(const beliefs& all) {
    std::vector<std::string> found;
    for (const auto& [name, held] : all) {
        for (std::size_t index = 1; index < held.size(); ++index) {
            const belief& former = held[index - 1];
            const belief& next = held[index];
            if (next.from_us > former.to_us) continue;
            found.push_back(name + ": " + std::to_string(former.token) + " believed until " +
                            std::to_string(former.to_us) + ", " + std::to_string(next.token) + " from " +
                            std::to_string(next.from_us));
        }
    }
    return found;
}

void expect_growing_tokens(const beliefs& all) {
    for (const auto& [name, held] : all) {
        for (std::size_t index = 1; index < held.size(); ++index) {
            EXPECT_GT(held[index].token, held[index - 1].token) << name;
        }
    }
}

class Restart : public chaos_fixture {
protected:
    using chaos_fixture::chaos_fixture;

    void restart_under(client_groups& clients, redis_server::data what) {
        ASSERT_TRUE(eventually([&] { return clients.all_served_since(0); }, an_age));
        server.kill();
        server.restart(what);
        const auto back = now_us();
        ASSERT_TRUE(eventually([&] { return clients.all_served_since(back); }, an_age));
        const auto later = now_us();
        ASSERT_TRUE(eventually([&] { return clients.all_served_since(later); }, an_age));
        clients.finish();
        std::cout << "errors told: " << clients.errors_told() << '\n';
    }
};

class RestartWithData : public Restart {
protected:
    RestartWithData() : Restart(server_options{.persistent = true}) {}
};

TEST_F(RestartWithData, AnswersEveryWaiterAndNeverHasTwoHolders) {
    client_groups clients{server, {}};
    restart_under(clients, redis_server::data::keep);
    EXPECT_THAT(overlaps(clients.collect()), IsEmpty());
    expect_growing_tokens(clients.collect());
}

// Two beliefs may overlap until the former holder's next contact with the server, but their tokens differ.
TEST_F(Restart, WithoutDataGivesNewHoldersLargerTokens) {
    client_groups clients{server, {}};
    restart_under(clients, redis_server::data::lose);
    std::cout << "overlaps, as is to be expected: " << overlaps(clients.collect()).size() << '\n';
    expect_growing_tokens(clients.collect());
}

TEST_F(Restart, WithoutDataNeverHasTwoHoldersIfTheServerIsMistrusted) {
    client_groups clients{server, {.lease_ms = "900", .max_lease_ms = "1500", .trust = "mistrusted"}};
    restart_under(clients, redis_server::data::lose);
    EXPECT_THAT(overlaps(clients.collect()), IsEmpty());
    expect_growing_tokens(clients.collect());
}

// R45: the fences are lost, the clock is right.
TEST_F(Restart, TokensGrowAcrossLostData) {
    client redis{server.url()};
    mutex lock{redis, "fenced"};
    const auto before = lock.acquire().token();
    redis.ping();  // behind the release, on the same link
    server.call({"FLUSHALL"});
    client fresh{server.url()};  // a client that has seen no token yet
    mutex same_lock{fresh, "fenced"};
    const auto flushed = same_lock.acquire().token();
    EXPECT_GT(flushed, before);
    server.kill();
    server.restart(redis_server::data::lose);
    client fresher{server.url()};
    mutex again{fresher, "fenced"};
    EXPECT_GT(again.acquire().token(), flushed);
}

// R45: the clock is set back, the fence is kept. A fence from the future looks the same to the server.
TEST_F(Restart, TokensGrowAcrossAClockSetBack) {
    client redis{server.url()};
    mutex lock{redis, "fenced"};
    const auto before = lock.acquire().token();
    redis.ping();  // behind the release, on the same link
    constexpr std::uint64_t hour_us = 3'600'000'000;
    const std::string future = std::to_string(before + hour_us);
    server.call({"SET", "hf:{fenced}:fence", future, "PX", "7200000"});
    client fresh{server.url()};
    mutex same_lock{fresh, "fenced"};
    const auto first = same_lock.acquire().token();
    const auto second = same_lock.acquire().token();
    EXPECT_EQ(first, before + hour_us + 1);
    EXPECT_EQ(second, first + 1);
    const auto kept_ms = server.call({"PTTL", "hf:{fenced}:fence"}).integer;
    EXPECT_GT(kept_ms, static_cast<std::int64_t>(hour_us / 1000)) << "the mark must outlive the set-back hour";
}

}  // namespace
}  // namespace holdfast::testing::restart_test
