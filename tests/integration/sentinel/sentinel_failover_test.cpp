// Another server becomes the primary while many hold locks and wait for them: all are served or told, and soon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/crowd.hpp"
#include "support/eventually.hpp"
#include "support/sentinel_set.hpp"

namespace holdfast::testing::sentinel_failover_test {
namespace {

using namespace std::chrono_literals;

class SentinelFailover : public ::testing::Test {
protected:
    explicit SentinelFailover(const std::string& url_options = "", const mutex_options& terms = crowd::usual)
        : all{set.url() + url_options, terms} {}

    static constexpr std::size_t many = crowd::many;

    void hold_and_wait() {
        all.hold_and_wait();
        for (redis_server& each : set.servers) ASSERT_TRUE(gets_the_whole_line(each));
    }
    static bool gets_the_whole_line(redis_server& server) {
        return eventually([&] { return in_queue(server) == many; }, an_age);
    }

    static std::size_t in_queue(redis_server& server) {
        std::size_t count = 0;
        for (std::size_t i = 0; i < many; ++i) {
            count += static_cast<std::size_t>(server.call({"ZCARD", crowd::queue_of(i)}).integer);
        }
        return count;
    }

    /// Of our clients.
    static std::size_t links_at(redis_server& server) {
        const std::string list = call_twice(server, {"CLIENT", "LIST"}).text;
        std::size_t count = 0;
        for (std::size_t at = 0; (at = list.find("name=subject ", at)) != std::string::npos; ++at) ++count;
        return count;
    }
    // The sentinels cut all links to a server that they make a replica, the harness's own included.
    static redis_reply call_twice(redis_server& server, const std::vector<std::string>& arguments) {
        try {
            return server.call(arguments);
        } catch (const std::runtime_error&) {
            return server.call(arguments);
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
///
/// What depends on `.replicas` are the late grants: the primary makes them when no replica follows it any more, and
/// takes them along. Who asks for no replicas is told of them at once, and the successor gives them to others. The
/// crowd shows that what one replica has acknowledged is enough, for the other one has nothing of it.
class AcknowledgedFailover : public SentinelFailover {
protected:
    static inline const mutex_options acknowledged{.lease = 60s, .replicas = 1, .replica_timeout = 3000ms};

    AcknowledgedFailover() : SentinelFailover{"?timeout=6s", acknowledged} {}

    void hold_and_wait() {
        cut_off(lagging);
        ASSERT_TRUE(eventually([&] { return primary.info("replication", "min_slaves_good_slaves") == "1"; }, an_age));
        all.hold_and_wait();
        ASSERT_TRUE(gets_the_whole_line(primary));
        ASSERT_TRUE(gets_the_whole_line(acknowledging));
    }
    void grant_what_no_replica_gets() {
        cut_off(acknowledging);
        primary.call({"CONFIG", "SET", "min-replicas-to-write", "0"});  // or it would refuse, whatever we ask for
        for (std::size_t i = 0; i < many; ++i) {
            late_locks.push_back(std::make_unique<mutex>(latecomer, late_name(i), patiently));
            late.push_back(late_locks.back()->async_acquire(boost::asio::use_future));
        }
        // The token is remembered, also of a grant that is undone because no replica has it.
        for (std::size_t i = 0; i < many; ++i) {
            const std::string fence = "hf:{" + late_name(i) + "}:fence";
            ASSERT_TRUE(eventually([&] { return primary.call({"EXISTS", fence}).integer == 1; }, an_age)) << fence;
        }
    }
    /// The primary is gone, and the sentinels reach one of its replicas.
    void expect_no_two_believe() {
        acknowledging.resume();
        ASSERT_TRUE(set.has_replaced(primary)) << set.sentinels[0].log_tail();
        ASSERT_EQ(&set.primary(), &acknowledging);
        lagging.resume();
        // As the sentinels would, some ten seconds later. Nothing is acknowledged before.
        call_twice(lagging, {"REPLICAOF", "127.0.0.1", std::to_string(acknowledging.port())});
        all.expect_all_served(crowd::first_write([&] { return &acknowledging; }, "probe"));
        for (std::size_t i = 0; i < many; ++i) expect_late_grant_is_of_the_successor(i);
    }

    redis_server& primary = set.servers[0];
    redis_server& acknowledging = set.servers[1];
    redis_server& lagging = set.servers[2];

private:
    // As long as it is stopped it cannot make its link anew, and nothing waits for it there.
    void cut_off(redis_server& replica) {
        replica.pause();
        primary.call({"CLIENT", "KILL", "TYPE", "replica"});
    }
    static std::string late_name(std::size_t i) { return "late " + std::to_string(i); }
    static std::string holder_at(redis_server& server, std::size_t i) {
        return server.call({"GET", "hf:{" + late_name(i) + "}"}).text;
    }
    void expect_late_grant_is_of_the_successor(std::size_t i) {
        lease got;
        const errc refused = condition_of([&] { got = late[i].get(); });
        if (refused == errc::not_replicated) return;  // a busy machine: nobody believes that, either
        EXPECT_EQ(to_text(refused), to_text(errc{}));
        EXPECT_EQ(holder_at(acknowledging, i), got.id()) << "it was told by the primary that took it along";
        EXPECT_FALSE(got.lost().stop_requested());
    }

    // As patient as there is: nobody is to give up before the primary is gone.
    static inline const mutex_options patiently{.lease = 60s, .replicas = 1, .replica_timeout = 4000ms};
    client latecomer{set.url() + "?timeout=60s"};
    std::vector<std::unique_ptr<mutex>> late_locks;
    std::vector<std::future<lease>> late;
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
    ASSERT_NO_FATAL_FAILURE(grant_what_no_replica_gets());
    primary.kill();
    expect_no_two_believe();
}

TEST_F(AcknowledgedFailover, WhenThePrimaryHangsThereAreNoTwoBelievers) {
    ASSERT_NO_FATAL_FAILURE(hold_and_wait());
    ASSERT_NO_FATAL_FAILURE(grant_what_no_replica_gets());
    primary.pause();
    expect_no_two_believe();
    primary.resume();
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
}  // namespace holdfast::testing::sentinel_failover_test
