// Another server becomes the primary while many hold locks and wait for them: all are served or told, and soon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <cstdint>
#include <future>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/crowd.hpp"
#include "support/eventually.hpp"
#include "support/sentinel_set.hpp"

namespace holdfast::testing {
namespace {

using namespace std::chrono_literals;

class SentinelFailover : public ::testing::Test {
protected:
    explicit SentinelFailover(const std::string& url_options = "", const mutex_options& terms = crowd::usual)
        : all{set.url() + url_options, terms} {}

    static constexpr std::size_t many = crowd::many;

    void hold_and_wait() {
        all.hold_and_wait();
        ASSERT_TRUE(eventually([&] { return in_line(set.servers[0]) == many; }, an_age));
        ASSERT_TRUE(
            eventually([&] { return in_line(set.servers[1]) == many && in_line(set.servers[2]) == many; }, an_age))
            << "both replicas know all of it";
    }

    static std::size_t in_line(redis_server& server) {
        std::size_t count = 0;
        for (std::size_t i = 0; i < many; ++i) {
            count += static_cast<std::size_t>(server.call({"ZCARD", crowd::queue_of(i)}).integer);
        }
        return count;
    }

    /// Of our clients.
    static std::size_t links_at(redis_server& server) {
        const std::string list = list_of_links(server);
        std::size_t count = 0;
        for (std::size_t at = 0; (at = list.find("name=subject ", at)) != std::string::npos; ++at) ++count;
        return count;
    }
    // The sentinels cut all links to a server that they make a replica, the harness's own included.
    static std::string list_of_links(redis_server& server) {
        try {
            return server.call({"CLIENT", "LIST"}).text;
        } catch (const std::runtime_error&) {
            return server.call({"CLIENT", "LIST"}).text;
        }
    }

    /// The first of the servers is gone.
    void expect_all_go_on(crowd::steady::time_point since_when) {
        auto replaced = std::async(std::launch::async, [&] { return set.has_replaced(set.servers[0]); });
        const auto serving = crowd::first_write([&] { return successor(); }, "probe");
        std::cout << "failed over within " << crowd::since(since_when).count() << " ms\n";
        all.expect_all_served(serving);
        EXPECT_TRUE(replaced.get());
    }
    /// Whom a sentinel names in the place of the first.
    redis_server* successor() {
        for (redis_server& each : set.sentinels) {
            redis_server& named = set.primary_of(each);
            if (&named != &set.servers[0]) return &named;
        }
        return nullptr;
    }

    sentinel_set set{{.config = {"min-replicas-to-write 1"}}};  // as docs/deployment.md recommends
    crowd all;
};

/// Every grant and every renewal is on a replica before it counts.
class AcknowledgedFailover : public SentinelFailover {
protected:
    AcknowledgedFailover()
        : SentinelFailover{"?timeout=6s", {.lease = 60s, .replicas = 1, .replica_timeout = 3000ms}} {}
};

TEST_F(SentinelFailover, WhenThePrimaryIsKilledAllGoOnWithItsSuccessor) {
    ASSERT_NO_FATAL_FAILURE(hold_and_wait());
    const auto killed = crowd::steady::now();
    set.servers[0].kill();
    expect_all_go_on(killed);
}

// Its links are all there; only the sentinels know.
TEST_F(SentinelFailover, WhenThePrimaryHangsAllGoOnWithItsSuccessor) {
    ASSERT_NO_FATAL_FAILURE(hold_and_wait());
    const auto paused = crowd::steady::now();
    set.servers[0].pause();
    expect_all_go_on(paused);
    // When it wakes up it still takes itself for the primary, until the sentinels have told it otherwise. Nobody goes
    // there.
    set.servers[0].resume();
    EXPECT_TRUE(eventually([&] { return links_at(set.servers[0]) == 0; }, an_age));
    mutex again{all.holding[0], "afterwards"};
    lease afterwards = again.acquire();
    EXPECT_EQ(set.primary().call({"GET", "hf:{afterwards}"}).text, afterwards.id());
    EXPECT_EQ(links_at(set.primary()), all.holding.size() + all.waiting.size());
}

TEST_F(AcknowledgedFailover, WhenThePrimaryIsKilledThereAreNoTwoBelievers) {
    ASSERT_NO_FATAL_FAILURE(hold_and_wait());
    const auto killed = crowd::steady::now();
    set.servers[0].kill();
    expect_all_go_on(killed);
}

TEST_F(AcknowledgedFailover, WhenThePrimaryHangsThereAreNoTwoBelievers) {
    ASSERT_NO_FATAL_FAILURE(hold_and_wait());
    const auto paused = crowd::steady::now();
    set.servers[0].pause();
    expect_all_go_on(paused);
    set.servers[0].resume();
}

// The old primary is well, and goes on for a moment; what it grants then is forgotten.
TEST_F(SentinelFailover, AFailoverByHandUnderLoadLeavesNobodyBehind) {
    constexpr std::size_t names = 10;
    constexpr std::size_t workers = 40;
    std::vector<std::atomic<int>> rounds(workers);
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < workers; ++i) {
        running.emplace_back([&, i](const std::stop_token& stop) {
            const std::string name = crowd::name_of(i % names);
            mutex lock{(i % 2 == 0 ? all.holding : all.waiting)[i % 3], name, {.lease = 2s}};
            while (!stop.stop_requested()) {
                try {
                    lease got = lock.try_acquire_for(4 * an_age);
                    if (!got) continue;
                    const std::uint64_t token = got.token();
                    all.believers.begins(name, token);
                    std::this_thread::sleep_for(1ms);
                    all.believers.ends(name, token);
                    got.release();
                    ++rounds[i];
                } catch (const error& refused) {
                    ADD_FAILURE() << refused.what();
                }
            }
        });
    }
    const auto everybody_gets_on = [&](int more) {
        std::vector<int> before(rounds.begin(), rounds.end());
        return eventually(
            [&] {
                for (std::size_t i = 0; i < workers; ++i) {
                    if (rounds[i] < before[i] + more) return false;
                }
                return true;
            },
            2 * an_age);
    };
    EXPECT_TRUE(everybody_gets_on(2));
    EXPECT_TRUE(set.fail_over());
    EXPECT_TRUE(set.has_moved_from(set.servers[0]));
    const auto announced = crowd::steady::now();
    EXPECT_TRUE(everybody_gets_on(1));
    std::cout << "after the switch: everybody was served again within " << crowd::since(announced).count() << " ms, "
              << all.believers.overlaps() << " grants overlapped\n";
    // Nobody is at the old primary any more: what comes now is the new one's, and greater than all before.
    EXPECT_TRUE(eventually([&] { return links_at(set.servers[0]) == 0; }, an_age));
    for (std::jthread& each : running) each.request_stop();
    running.clear();
    for (std::size_t i = 0; i < names; ++i) {
        const std::uint64_t before = all.believers.greatest(crowd::name_of(i));
        mutex lock{all.holding[0], crowd::name_of(i)};
        EXPECT_GT(lock.acquire().token(), before) << crowd::name_of(i);
    }
}

}  // namespace
}  // namespace holdfast::testing
