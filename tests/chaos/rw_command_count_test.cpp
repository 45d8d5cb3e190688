// The number of commands that the read-write lock costs, by the server's own count: R32.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "chaos/chaos_fixture.hpp"

namespace holdfast::testing::rw_command_count_test {
namespace {

class RwCommandCount : public chaos_fixture {
protected:
    /// All scripts are loaded before: the first call of each sends its full text.
    RwCommandCount() {
        lease reading = lock.acquire_shared();
        lease writing = reading.upgrade();
        writing.downgrade();
    }

    void start_counting() {
        redis.ping();
        server.reset_stats();
    }
    void expect_commands(std::int64_t scripts) {
        redis.ping();
        EXPECT_EQ(server.command_calls("evalsha"), scripts);
        EXPECT_EQ(server.command_calls("eval"), 0);
        EXPECT_EQ(server.command_calls("subscribe"), 0);
        EXPECT_EQ(server.command_calls("ping"), 1);
    }

    client redis{server.url()};
    shared_mutex lock{redis, "catalog", {.lease = std::chrono::seconds{60}}};
};

TEST_F(RwCommandCount, OfAnUncontendedCycleIsTwo) {
    constexpr int cycles = 50;
    start_counting();
    for (int i = 0; i < cycles; ++i) {
        lock.lock_shared();
        lock.unlock_shared();
    }
    expect_commands(2 * cycles);
    start_counting();
    for (int i = 0; i < cycles; ++i) lock.acquire().release();
    expect_commands(2 * cycles);
    EXPECT_EQ(server.command_calls("publish"), 0);
}

TEST_F(RwCommandCount, OfAReaderBesideOthersIsTwo) {
    const lease another = lock.acquire_shared();
    start_counting();
    lock.acquire_shared().release();
    expect_commands(2);
}

TEST_F(RwCommandCount, OfAnUpgradeIsOneAndOfADowngradeToo) {
    lease reading = lock.acquire_shared();
    start_counting();
    lease writing = reading.upgrade();
    expect_commands(1);
    start_counting();
    lease again = writing.downgrade();
    expect_commands(1);
}

// An owner that holds both modes: releasing the write hold is the downgrade.
TEST_F(RwCommandCount, OfAnAutomaticDowngradeIsOne) {
    lease reading = lock.acquire_shared();
    lease writing = reading.upgrade();
    start_counting();
    EXPECT_FALSE(writing.release());
    expect_commands(1);
}

TEST_F(RwCommandCount, OfAWriteReleaseThatWakes100ReadersIsOneAndOnePushForEachOf5Processes) {
    constexpr std::size_t processes = 5;
    constexpr std::size_t readers_each = 20;
    lease writing = lock.acquire();
    std::vector<worker> workers;
    for (std::size_t started = 0; started < processes; ++started) {
        workers.emplace_back(std::vector<std::string>{"share-hold", server.url(), "catalog", "60000",
                                                      std::to_string(readers_each), "read"});
    }
    ASSERT_TRUE(queue_reaches("catalog", processes * readers_each));
    start_counting();
    afterwards left;
    EXPECT_FALSE(writing.release(left));
    for (worker& each : workers) each.wait_for("held");
    expect_commands(1);
    EXPECT_EQ(server.command_calls("publish"), static_cast<std::int64_t>(processes));
    EXPECT_EQ(left.holders, processes * readers_each);
    EXPECT_EQ(left.waiters, 0U);
    for (worker& each : workers) EXPECT_EQ(each.finish(), went_well) << each.process().errors();
}

}  // namespace
}  // namespace holdfast::testing::rw_command_count_test
