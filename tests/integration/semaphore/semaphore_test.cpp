// The semaphore on a real server: permits, their order, crashes, limits, and where it works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/leftovers.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/replica_set.hpp"
#include "support/sentinel_set.hpp"

namespace holdfast::testing::semaphore_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class Semaphore : public ::testing::Test {
protected:
    std::int64_t in_queue() { return server.call({"ZCARD", "hf:{pool}:queue"}).integer; }
    void wait_for_queue(std::int64_t many) {
        ASSERT_TRUE(eventually([&] { return in_queue() == many; }, an_age));
    }

    redis_server server;
    client subject{server.url(), {.max_lease = 1h}};
    client other{server.url()};
    semaphore pool{subject, "pool", 4};
    semaphore theirs{other, "pool", 4};
};

TEST_F(Semaphore, AtMostTheLimitIsOutAtATime) {  // R53
    lease one = pool.acquire();
    lease two = theirs.acquire(2);
    EXPECT_EQ(pool.available(), 1U);
    EXPECT_FALSE(theirs.try_acquire(2));
    const lease last = pool.try_acquire();
    EXPECT_TRUE(last);
    EXPECT_FALSE(theirs.try_acquire());
    EXPECT_FALSE(two.release());
    EXPECT_EQ(theirs.available(), 2U);
    EXPECT_TRUE(theirs.try_acquire(2));
}

TEST_F(Semaphore, ALeaseIsOneOfAnyLock) {
    lease held = pool.acquire(3, {.lease = 20s});
    EXPECT_GT(held.validity(), 10s);
    EXPECT_FALSE(held.lost().stop_requested());
    EXPECT_FALSE(held.renew());
    const auto holders = theirs.holders();
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders[0].id, held.id());
    EXPECT_EQ(holders[0].permits, 3U);
    EXPECT_EQ(holders[0].token, held.token());
    EXPECT_GT(holders[0].left, 10s);
    lease next = theirs.acquire();
    EXPECT_GT(next.token(), held.token());
    EXPECT_EQ(condition_of([&] { next.upgrade(); }), errc::held_other_mode);
    EXPECT_EQ(condition_of([&] { next.downgrade(); }), errc::held_other_mode);
    afterwards left;
    EXPECT_FALSE(held.release(left));
    EXPECT_EQ(left.holders, 1U);
    EXPECT_EQ(left.waiters, 0U);
}

TEST_F(Semaphore, EachAcquisitionTakesPermitsOfItsOwn) {  // not re-entrant
    const lease first = pool.acquire(3);
    EXPECT_FALSE(pool.try_acquire(2)) << "in the same thread";
    EXPECT_EQ(condition_of([&] { pool.acquire(1, {.owner = owner{}}); }), errc::bad_option);
}

TEST_F(Semaphore, ARequestForManyIsNotOvertakenByRequestsForFew) {  // R53
    lease held = theirs.acquire(2);
    auto many = std::async(std::launch::async, [&] { return theirs.acquire(4); });
    wait_for_queue(1);
    refusal why;
    EXPECT_FALSE(pool.try_acquire(1, {.why_not = &why}));
    EXPECT_EQ(why.code, errc::reserved);
    auto few = std::async(std::launch::async, [&] { return pool.acquire(1); });
    wait_for_queue(2);
    EXPECT_FALSE(held.release());
    lease all = many.get();
    EXPECT_EQ(in_queue(), 1) << "the second waits for the first";
    EXPECT_FALSE(all.release());
    EXPECT_TRUE(few.get());
}

TEST_F(Semaphore, OneReleaseAdmitsAllWhoFitByOneMessageForEachProcess) {
    lease held = pool.acquire(4);
    std::vector<std::future<lease>> waiting;
    for (int i = 0; i < 4; ++i) waiting.push_back(std::async(std::launch::async, [&] { return theirs.acquire(); }));
    wait_for_queue(4);
    server.reset_stats();
    EXPECT_FALSE(held.release());
    std::vector<lease> all;
    for (auto& each : waiting) all.push_back(each.get());
    EXPECT_EQ(server.command_calls("publish"), 1);
    EXPECT_EQ(pool.available(), 0U);
}

TEST_F(Semaphore, ACrashReturnsExactlyItsPermitsWhenItsLeaseEnds) {  // R53
    const lease living = pool.acquire(1);
    semaphore crashing{other, "pool", 4, {.lease = 1s, .renew = false}};
    lease crashed = crashing.acquire(3);
    const lease next = pool.try_acquire_for(an_age, 3);
    EXPECT_TRUE(next) << "a poll found out";
    EXPECT_TRUE(crashed.lost().stop_requested());
    EXPECT_FALSE(pool.try_acquire());
    EXPECT_TRUE(crashed.release());
    EXPECT_FALSE(pool.try_acquire()) << "a release of what is lost makes no permit";
}

TEST_F(Semaphore, AHoldIsRenewedAndAFixedLeaseEnds) {
    semaphore fixed{subject, "pool", 4, {.lease = 300ms, .renew = false}};
    semaphore renewed{subject, "pool", 4, {.lease = 300ms}};
    const lease ends = fixed.acquire(2);
    const lease stays = renewed.acquire(2);
    EXPECT_TRUE(pool.try_acquire_for(an_age, 2));
    EXPECT_TRUE(ends.lost().stop_requested());
}

TEST_F(Semaphore, AWaitEndsByItsDeadlineAndByAStopRequest) {
    const lease held = pool.acquire(4);
    EXPECT_FALSE(theirs.try_acquire_for(10ms, 1));
    EXPECT_FALSE(theirs.try_acquire_until(std::chrono::steady_clock::now() + 10ms, 2));
    std::stop_source stop;
    auto waiting = std::async(std::launch::async,
                              [&] { return condition_of([&] { theirs.acquire(1, {.stop = stop.get_token()}); }); });
    wait_for_queue(1);
    stop.request_stop();
    EXPECT_EQ(waiting.get(), errc::cancelled);
    wait_for_queue(0);
}

TEST_F(Semaphore, AWaiterThatGivesUpLetsThoseBehindIn) {
    const lease held = theirs.acquire(2);
    std::stop_source stop;
    auto many = std::async(std::launch::async,
                           [&] { return condition_of([&] { theirs.acquire(4, {.stop = stop.get_token()}); }); });
    wait_for_queue(1);
    auto few = std::async(std::launch::async, [&] { return pool.acquire(2); });
    wait_for_queue(2);
    stop.request_stop();
    EXPECT_EQ(many.get(), errc::cancelled);
    EXPECT_TRUE(few.get());
}

TEST_F(Semaphore, AsynchronousCallersGetTheSame) {
    namespace asio = boost::asio;
    lease two = pool.async_acquire(2, asio::use_future).get();
    lease one = pool.async_acquire(asio::use_future).get();
    EXPECT_EQ(pool.available(), 1U);
    EXPECT_EQ(condition_of([&] {
                  try {
                      theirs.async_try_acquire(2, asio::use_future).get();
                  } catch (const boost::system::system_error& no) {
                      throw error(static_cast<errc>(no.code().value()), "");
                  }
              }),
              errc::busy);
    auto waiting = theirs.async_try_acquire_for(an_age, 3, asio::use_future);
    two.async_release(asio::use_future).get();
    EXPECT_FALSE(one.release());
    EXPECT_TRUE(waiting.get());
    auto with_options = pool.async_acquire(4, {.lease = 10s}, asio::use_future);
    EXPECT_TRUE(with_options.get());
}

// --- limits ----------------------------------------------------------------------------------------------

TEST_F(Semaphore, AnotherLimitIsRefusedWhileAnybodyHolds) {
    lease held = pool.acquire();
    semaphore five{other, "pool", 5};
    refusal why;
    EXPECT_EQ(condition_of([&] { five.acquire(1, {.why_not = &why}); }), errc::limit_differs);
    EXPECT_THAT(why.detail, HasSubstr("4"));
    EXPECT_EQ(condition_of([&] { static_cast<void>(five.try_acquire()); }), errc::limit_differs);
    EXPECT_EQ(condition_of([&] { five.resize(6); }), errc::limit_differs);
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(five.try_acquire(5));
}

TEST_F(Semaphore, MoreThanTheLimitIsRefusedAtOnce) {
    EXPECT_EQ(condition_of([&] { pool.acquire(5); }), errc::over_limit);
    EXPECT_EQ(condition_of([&] { pool.try_acquire_for(an_age, 5); }), errc::over_limit);
    EXPECT_EQ(condition_of([&] { pool.acquire(0); }), errc::bad_option);
    EXPECT_EQ(leftovers(server), "");
}

TEST_F(Semaphore, AGreaterLimitAdmitsWaitersAndASmallerOneWaitsUntilEnoughCameBack) {
    lease held = pool.acquire(4);
    auto waiting = std::async(std::launch::async, [&] { return theirs.acquire(2); });
    wait_for_queue(1);
    pool.resize(6);
    lease two = waiting.get();
    pool.resize(3);
    EXPECT_EQ(pool.available(), 0U);
    EXPECT_FALSE(two.release());
    EXPECT_FALSE(theirs.try_acquire()) << "four of three are out";
    EXPECT_FALSE(held.release());
    EXPECT_EQ(theirs.available(), 3U) << "what the others declare stays, and the new limit counts";
    EXPECT_TRUE(theirs.try_acquire(3));
}

TEST_F(Semaphore, ASmallerLimitRefusesThoseWhoWaitForMore) {
    const lease held = pool.acquire(4);
    auto waiting = std::async(std::launch::async, [&] { return condition_of([&] { theirs.acquire(3); }); });
    wait_for_queue(1);
    pool.resize(2);
    EXPECT_EQ(waiting.get(), errc::over_limit);
    wait_for_queue(0);
}

TEST_F(Semaphore, TwoWhoResizeAtATimeBothEnd) {
    std::vector<std::jthread> both;
    for (semaphore* each : {&pool, &theirs}) {
        both.emplace_back([each] {
            for (std::size_t i = 1; i <= 20; ++i) each->resize(i);
        });
    }
    both.clear();
    EXPECT_EQ(pool.available(), 20U);
}

TEST_F(Semaphore, OptionsThatMakeNoSenseAreRefused) {
    EXPECT_EQ(condition_of([&] { semaphore(subject, "pool", 0); }), errc::bad_option);
    EXPECT_EQ(condition_of([&] { semaphore(subject, "pool", 2'000'000'000); }), errc::bad_option);
    EXPECT_EQ(condition_of([&] { semaphore(subject, "", 4); }), errc::bad_name);
    EXPECT_EQ(condition_of([&] { semaphore(subject, "pool", 4, {.keys = keys::raw}); }), errc::bad_option);
    EXPECT_EQ(condition_of([&] { semaphore(subject, "pool", 4, {.keep = 1s}); }), errc::bad_option);
    EXPECT_EQ(condition_of([&] { semaphore(subject, "pool", 4, {.passes = 1}); }), errc::bad_option);
}

TEST_F(Semaphore, ANameOfAnotherKindIsRefusedByBoth) {
    mutex lock{subject, "pool"};
    {
        const lease held = pool.acquire();
        EXPECT_EQ(condition_of([&] { lock.acquire(); }), errc::wrong_type);
    }
    const lease held = lock.acquire();
    EXPECT_EQ(condition_of([&] { pool.acquire(); }), errc::wrong_type);
}

// --- the cost --------------------------------------------------------------------------------------------

TEST_F(Semaphore, AnUncontendedCycleCostsTwoCommands) {
    { const lease warm_up = pool.acquire(); }
    subject.ping();
    server.reset_stats();
    constexpr int cycles = 50;
    for (int i = 0; i < cycles; ++i) const lease held = pool.acquire(2);
    subject.ping();  // behind the last of them, on the same link
    EXPECT_EQ(server.command_calls("evalsha"), 2 * cycles);
    EXPECT_EQ(server.command_calls("eval"), 0);
    subject.ping();
    EXPECT_EQ(leftovers(server), "");
}

TEST_F(Semaphore, AContendedCycleCostsTwoCommandsTooAndTheLimitHolds) {
    for (semaphore* each : {&pool, &theirs}) const lease warm_up = each->acquire();
    lease gate = pool.acquire(4);
    constexpr int waiters = 16;
    constexpr int cycles = 10;
    std::atomic<int> out = 0;
    std::atomic<int> most = 0;
    std::vector<std::thread> running;
    server.reset_stats();
    for (int t = 0; t < waiters; ++t) {
        running.emplace_back([&, t] {
            semaphore& mine = t % 2 == 0 ? pool : theirs;
            const int permits = 1 + t % 3;
            for (int i = 0; i < cycles; ++i) {
                lease held = mine.acquire(static_cast<std::size_t>(permits));
                const int now = out += permits;
                for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                }
                std::this_thread::yield();
                out -= permits;
                EXPECT_FALSE(held.release());
            }
        });
    }
    wait_for_queue(waiters);
    EXPECT_FALSE(gate.release());
    for (std::thread& each : running) each.join();
    EXPECT_LE(most, 4);
    // The gate's release, and one poll or renewal more on a machine that stalls for seconds; 10 s is a poll's interval.
    EXPECT_GE(server.command_calls("evalsha") + server.command_calls("eval"), 2 * waiters * cycles + 1);
    EXPECT_LE(server.command_calls("evalsha") + server.command_calls("eval"), 2 * waiters * cycles + 3);
    EXPECT_EQ(leftovers(server), "");
}

// --- where it works --------------------------------------------------------------------------------------

TEST(SemaphoreOnSeveralServers, IsRefusedWithTheReason) {  // R53
    const std::vector<std::string> urls{"redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"};
    client subject{urls};
    try {
        const semaphore pool(subject, "pool", 4);
        ADD_FAILURE() << "constructed";
    } catch (const error& refused) {
        EXPECT_EQ(refused.condition(), errc::bad_option);
        EXPECT_THAT(refused.what(), HasSubstr("majority"));
    }
}

TEST(SemaphoreOnReplicas, AGrantIsOnAllOfThemWhenItIsTold) {
    replica_set set{2};
    client subject{set.primary.url() + "?timeout=6s"};
    semaphore pool{subject, "pool", 4, {.replicas = 2, .replica_timeout = 3s}};
    lease held = pool.acquire(3);
    for (redis_server& each : set.replicas) {
        EXPECT_THAT(each.call({"HGET", "hf:{pool}:grants", held.id()}).text, HasSubstr("3 "));
    }
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
}

TEST(SemaphoreWithSentinels, HoldsAndWaitersSurviveAFailover) {
    sentinel_set set;
    client subject{set.url()};
    client other{set.url()};
    semaphore pool{subject, "pool", 3};
    semaphore theirs{other, "pool", 3};
    const redis_server& former = set.primary();
    lease held = pool.acquire(3);
    auto waiting = std::async(std::launch::async, [&] { return theirs.acquire(2); });
    for (redis_server& each : set.servers) {
        ASSERT_TRUE(eventually([&] { return each.call({"ZCARD", "hf:{pool}:queue"}).integer == 1; }, an_age));
    }
    ASSERT_TRUE(set.fail_over());
    ASSERT_TRUE(set.has_moved_from(former));
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(waiting.get());
}

TEST(SemaphoreOnACluster, SlotsThatMoveUnderWorkersCostNoPermitAndTellNoError) {
    redis_cluster cluster{{.replicas = false}};
    client one{cluster.url()};
    client two{cluster.url()};
    const std::string key = "hf:{pool}";
    constexpr int limit = 5;
    constexpr std::size_t workers = 12;
    std::atomic<int> out = 0;
    std::atomic<int> rounds = 0;
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < workers; ++i) {
        running.emplace_back([&, i](const std::stop_token& stop) {
            semaphore mine{i % 2 == 0 ? one : two, "pool", limit, {.lease = 60s}};
            const int permits = 1 + static_cast<int>(i % 3);
            while (!stop.stop_requested() && !HasFailure()) {
                try {
                    const lease held = mine.try_acquire_for(4 * an_age, static_cast<std::size_t>(permits));
                    ASSERT_TRUE(held);
                    EXPECT_LE(out += permits, limit);
                    std::this_thread::yield();
                    out -= permits;
                    ++rounds;
                } catch (const error& refused) {
                    ADD_FAILURE() << refused.what();
                }
            }
        });
    }
    for (int i = 0; i < 10 && !HasFailure(); ++i) {
        const int before = rounds;
        const auto at = &cluster.owner_of(key) - cluster.members.data();
        cluster.move_slot(key, cluster.members[static_cast<std::size_t>(at + 1) % 3]);
        EXPECT_TRUE(eventually([&] { return rounds > before; }, 2 * an_age)) << "after move " << i;
    }
    for (std::jthread& each : running) each.request_stop();
    running.clear();
    EXPECT_GT(rounds, 20);
    EXPECT_EQ(semaphore(one, "pool", limit).available(), static_cast<std::size_t>(limit));
}

TEST(SemaphoreOnACluster, AHoldIsRenewedWhileItsSlotMoves) {
    redis_cluster cluster{{.replicas = false}};
    client subject{cluster.url()};
    semaphore pool{subject, "pool", 2};
    lease held = pool.acquire();
    auto move = cluster.begin_move("hf:{pool}", cluster.other_than_owner_of("hf:{pool}"));
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.lost().stop_requested());
    while (cluster.move_keys(move, 1)) {
    }
    cluster.finish_move(move);
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
}

}  // namespace
}  // namespace holdfast::testing::semaphore_test
