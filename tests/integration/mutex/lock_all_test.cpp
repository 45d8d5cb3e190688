// Several locks together: all of them are valid when they are returned, or none is held.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/in_background.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::lock_all_test {
namespace {

using namespace std::chrono_literals;

/// `prices` comes before `stock` in the order of all locks.
class LockAll : public ::testing::Test {
protected:
    static constexpr milliseconds brief = 3s;

    std::string holder_of(const std::string& name) { return server.call({"GET", "hf:{" + name + "}"}).text; }
    bool is_free(const std::string& name) { return server.call({"EXISTS", "hf:{" + name + "}"}).integer == 0; }
    /// The id of the hold on `prices`, once somebody has it and waits for `stock`.
    std::string first_hold_on_prices() {
        EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{stock}:queue"}).integer == 1; }));
        return holder_of("prices");
    }

    redis_server server;
    std::shared_ptr<metrics> counted = std::make_shared<metrics>();
    client other{server.url()};
    client subject{server.url(), {.metrics = counted}};
    mutex theirs{other, "stock"};
    mutex prices{subject, "prices", {.lease = brief}};
    mutex stock{subject, "stock"};
};

// R62
TEST_F(LockAll, ALockThatIsLostWhileALaterOneIsWaitedForIsTakenAgain) {
    lease held = theirs.acquire();
    auto taking = in_background([&] { return std::make_unique<lock_all>(stock, prices); });
    const std::string first = first_hold_on_prices();
    server.call({"DEL", "hf:{prices}"});
    ASSERT_TRUE(eventually([&] { return counted->losses >= 1; }));
    held.release();
    const auto both = taking.get();
    EXPECT_NE((*both)[1].id(), first);
    EXPECT_EQ(holder_of("prices"), (*both)[1].id());
    EXPECT_EQ(holder_of("stock"), (*both)[0].id());
    EXPECT_GT(both->validity(), 0ms);
    EXPECT_FALSE(both->lost().stop_requested());
}

// R62
TEST_F(LockAll, ALockWhoseFixedLeaseEndsWhileALaterOneIsWaitedForIsTakenAgain) {
    mutex fixed{subject, "prices", {.lease = 300ms, .renew = false}};
    lease held = theirs.acquire();
    auto taking = in_background([&] { return std::make_unique<lock_all>(fixed, stock); });
    const std::string first = first_hold_on_prices();
    EXPECT_TRUE(eventually([&] { return is_free("prices"); }));
    held.release();
    const auto both = taking.get();
    EXPECT_NE((*both)[0].id(), first);
    EXPECT_GE(counted->acquired, 4U) << "both, twice";
}

// R62: what the owner held before cannot be taken again, so there is nothing to return.
TEST_F(LockAll, AHoldOfTheCallersThatIsLostMeanwhileIsAnErrorAndNothingIsKept) {
    const owner job;
    const lease outer = prices.acquire({.owner = job});
    lease held = theirs.acquire();
    auto taking = in_background([&] { return condition_of([&] { lock_all both({.owner = job}, prices, stock); }); });
    first_hold_on_prices();
    server.call({"DEL", "hf:{prices}"});
    ASSERT_TRUE(eventually([&] { return counted->losses >= 1; }));
    held.release();
    EXPECT_EQ(to_text(taking.get()), to_text(errc::lost));
    EXPECT_TRUE(eventually([&] { return is_free("stock"); }));
}

TEST_F(LockAll, TellsTheLossOfAnyOfThemAndTheShortestValidity) {
    mutex longer{subject, "stock", {.lease = 60s}};
    lock_all both{longer, prices};
    EXPECT_LE(both.validity(), both[1].validity() + 1ms);
    EXPECT_LT(both.validity(), 2 * brief);
    lock_all moved{std::move(both)};
    EXPECT_EQ(both.size(), 0U);
    EXPECT_EQ(both.validity(), 0ms);
    EXPECT_FALSE(both.lost().stop_possible());
    const std::stop_token lost = moved.lost();
    EXPECT_FALSE(lost.stop_requested());
    server.call({"DEL", "hf:{prices}"});
    EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
    EXPECT_LE(moved.validity(), 0ms);
    EXPECT_GT(moved[0].validity(), 0ms) << "the other is still held";
}

class LockAllTogether : public ::testing::Test {
protected:
    /// Calls of scripts by clients since the last time.
    std::int64_t script_calls() {
        std::istringstream lines(server.call({"INFO", "commandstats"}).text);
        std::int64_t calls = 0;
        for (std::string line; std::getline(lines, line);) {
            for (const std::string name : {"cmdstat_evalsha:calls=", "cmdstat_eval:calls="}) {
                if (line.starts_with(name)) calls += std::stoll(line.substr(name.size()));
            }
        }
        return calls - std::exchange(seen_, calls);
    }
    bool is_free(const std::string& name) { return server.call({"EXISTS", "hf:{" + name + "}"}).integer == 0; }

    redis_server server;
    client subject{server.url()};
    client other{server.url()};
    mutex a{subject, "a"}, b{subject, "b"}, c{subject, "c"}, d{subject, "d"}, e{subject, "e"};

private:
    std::int64_t seen_ = 0;
};

TEST_F(LockAllTogether, FiveFreeLocksCostTwoCommands) {
    for (int i = 0; i < 3; ++i) {
        lock_all warm(a, b, c, d, e);  // the link comes up, and the server learns the scripts
    }
    ASSERT_TRUE(eventually([&] { return is_free("a") && is_free("e"); }));
    script_calls();
    constexpr int cycles = 10;
    for (int i = 0; i < cycles; ++i) {
        lock_all all(e, d, c, b, a);
        EXPECT_EQ(all[0].id(), server.call({"GET", "hf:{e}"}).text);
        EXPECT_GT(all.validity(), 0ms);
    }
    ASSERT_TRUE(eventually([&] { return is_free("a") && is_free("e"); }));
    EXPECT_EQ(script_calls(), 2 * cycles);
}

TEST_F(LockAllTogether, OneThatIsHeldIsWaitedForInTheQueue) {
    mutex theirs{other, "c"};
    lease held = theirs.acquire();
    auto taking = in_background([&] { return std::make_unique<lock_all>(a, b, c, d, e); });
    ASSERT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{c}:queue"}).integer == 1; }));
    held.release();
    const auto all = taking.get();
    EXPECT_EQ((*all)[2].id(), server.call({"GET", "hf:{c}"}).text);
    EXPECT_GT((*all)[2].token(), 0U);
}

TEST_F(LockAllTogether, TheReleaseHandsOverToThoseWhoWait) {
    mutex theirs{other, "b"};
    std::future<lease> next;
    {
        lock_all all(a, b, c);
        next = in_background([&] { return theirs.acquire(); });
        ASSERT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{b}:queue"}).integer == 1; }));
    }
    lease held = next.get();
    EXPECT_EQ(held.id(), server.call({"GET", "hf:{b}"}).text);
    EXPECT_TRUE(eventually([&] { return is_free("a") && is_free("c"); }));
}

TEST_F(LockAllTogether, TheSameLockTwiceIsReentered) {
    mutex again{subject, "a"};
    lock_all all(a, b, again);
    EXPECT_EQ(all[0].id(), all[2].id());
}

TEST_F(LockAllTogether, OtherKindsOfLocksAreAcquiredInOrder) {
    shared_mutex catalog{subject, "catalog"};
    lock_all all(catalog, a, b);
    EXPECT_EQ(all.size(), 3U);
    EXPECT_FALSE(is_free("catalog"));
}

TEST_F(LockAllTogether, ReadWriteLocksMayBeRead) {
    shared_mutex catalog{subject, "catalog"};
    shared_mutex theirs{other, "catalog"};
    const lease reader = theirs.acquire_shared();
    lock_all both(a, to_read(catalog));
    EXPECT_EQ(both[1].mode(), mode::shared);
    EXPECT_EQ(both[0].mode(), mode::exclusive);
    EXPECT_FALSE(theirs.try_acquire()) << "read";
}

TEST_F(LockAllTogether, OneThatIsWrittenAndReadIsReentered) {
    shared_mutex catalog{subject, "catalog"};
    lock_all all(to_read(catalog), a, catalog);
    EXPECT_EQ(all[0].id(), all[2].id());
    EXPECT_EQ(all[0].mode(), mode::shared);
}

TEST_F(LockAllTogether, ThreadsWithOverlappingSetsExcludeEachOther) {  // R62
    int counts[3] = {};
    std::vector<std::thread> threads;
    const std::array<std::array<std::string, 2>, 3> sets{{{"a", "b"}, {"b", "c"}, {"c", "a"}}};
    for (int n = 0; n < 6; ++n) {
        threads.emplace_back([&, n] {
            client own{server.url()};
            mutex left{own, sets[static_cast<std::size_t>(n % 3)][0]},
                right{own, sets[static_cast<std::size_t>(n % 3)][1]};
            for (int i = 0; i < 50; ++i) {
                lock_all both(left, right);
                for (const mutex* each : {&left, &right}) ++counts[each->name()[0] - 'a'];
            }
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(counts[0] + counts[1] + counts[2], 600);
    for (const int count : counts) EXPECT_EQ(count, 200);
}

TEST_F(LockAllTogether, AStopRequestEndsTheWaitAndNothingIsHeld) {
    mutex theirs{other, "b"};
    const lease held = theirs.acquire();
    std::stop_source stop;
    auto taking =
        in_background([&] { return condition_of([&] { lock_all all({.stop = stop.get_token()}, a, b, c); }); });
    ASSERT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{b}:queue"}).integer == 1; }));
    stop.request_stop();
    EXPECT_EQ(taking.get(), errc::cancelled);
    EXPECT_TRUE(eventually([&] { return is_free("a") && is_free("c"); }));
}

TEST_F(LockAll, OfNoLocksHoldsNothing) {
    const lock_all none{std::vector<std::reference_wrapper<lockable>>{}};
    EXPECT_EQ(none.size(), 0U);
    EXPECT_EQ(none.validity(), 0ms);
    EXPECT_FALSE(none.lost().stop_requested());
}

}  // namespace
}  // namespace holdfast::testing::lock_all_test
