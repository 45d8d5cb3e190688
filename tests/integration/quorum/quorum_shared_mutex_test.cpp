// A read-write lock on a majority of independent servers: R42, for every kind.
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "integration/quorum/quorum_fixture.hpp"

namespace holdfast::testing::quorum_shared_mutex_test {
namespace {

class QuorumSharedMutex : public quorum_fixture {
protected:
    static shared_mutex_options terms() { return {.lease = longest_lease}; }

    void SetUp() override {
        quorum_fixture::SetUp();
        mine.emplace(*subject, "stock", terms());
        theirs.emplace(*other, "stock", terms());
    }

    std::optional<shared_mutex> mine;
    std::optional<shared_mutex> theirs;
};
HOLDFAST_ON_THREE_AND_FIVE(QuorumSharedMutex);

// R42
TEST_P(QuorumSharedMutex, ReadersShareAndAWriterIsAlone) {
    lease reading = mine->acquire_shared();
    lease reading_too = theirs->acquire_shared();
    EXPECT_FALSE(theirs->try_acquire());
    EXPECT_FALSE(reading.release());
    EXPECT_FALSE(reading_too.release());
    const lease writing = theirs->acquire();
    EXPECT_FALSE(mine->try_acquire_shared());
    EXPECT_FALSE(mine->try_acquire());
}

// R42
TEST_P(QuorumSharedMutex, AQueuedWriterComesInWhenTheLastReaderLeaves) {
    lease reading = mine->acquire_shared();
    auto waiting = in_background([&] { return theirs->acquire(); });
    ASSERT_TRUE(queue_has(1));
    EXPECT_FALSE(reading.release());
    const lease writing = waiting.get();
    EXPECT_TRUE(writing);
    EXPECT_EQ(writing.mode(), mode::exclusive);
}

// R42
TEST_P(QuorumSharedMutex, UpgradesAndDowngrades) {
    lease reading = mine->acquire_shared();
    const std::uint64_t before = reading.token();
    lease writing = reading.upgrade();
    EXPECT_GT(writing.token(), before);
    EXPECT_FALSE(theirs->try_acquire_shared());
    lease reading_again = writing.downgrade();
    EXPECT_TRUE(theirs->try_acquire_shared());
}

// R42: the second of two that wait for each other is refused, on every server put back, and goes on reading.
TEST_P(QuorumSharedMutex, TheSecondOfTwoUpgradersIsRefusedAndGoesOnReading) {
    lease first = mine->acquire_shared();
    lease second = theirs->acquire_shared();
    auto waiting = in_background([&] { return first.upgrade(); });
    ASSERT_TRUE(queue_has(1));
    EXPECT_EQ(to_text(condition_of([&] { second.upgrade(); })), to_text(errc::would_deadlock));
    EXPECT_FALSE(second.lost().stop_requested());
    EXPECT_FALSE(second.release());
    const lease writing = waiting.get();
    EXPECT_TRUE(writing);
}

// R42: an upgrade that is given up leaves the readers as they were, everywhere.
TEST_P(QuorumSharedMutex, AnUpgradeGivenUpIsPutBackEverywhere) {
    lease first = mine->acquire_shared();
    lease second = theirs->acquire_shared();
    EXPECT_FALSE(first.try_upgrade_for(100ms));
    EXPECT_TRUE(queue_has(0));
    EXPECT_FALSE(first.lost().stop_requested());
    const auto third = make_client();
    shared_mutex another{*third, "stock", terms()};
    EXPECT_TRUE(another.try_acquire_shared());
}

// R42
TEST_P(QuorumSharedMutex, WorksWithAMinorityKilled) {
    for (std::size_t i = 0; i < minority(); ++i) servers[i].kill();
    lease reading = mine->acquire_shared();
    lease writing = reading.upgrade();
    EXPECT_FALSE(theirs->try_acquire_shared());
    lease reading_again = writing.downgrade();
    lease reading_too = theirs->acquire_shared();
    EXPECT_TRUE(reading_too);
}

// R43
TEST_P(QuorumSharedMutex, ReadersAndWritersAreRenewed) {
    lease reading = mine->acquire_shared();
    const auto end = std::chrono::steady_clock::now() + longest_lease + longest_lease / 2;
    while (std::chrono::steady_clock::now() < end) {
        ASSERT_FALSE(reading.lost().stop_requested());
        std::this_thread::sleep_for(20ms);
    }
    lease writing = reading.upgrade();
    EXPECT_GT(writing.validity(), 0ms);
}

// An attempt that is given up unanswered leaves two commands for each server. Those behind it are not sent: they would
// only make the servers later.
TEST_P(QuorumSharedMutex, AttemptsWhileTheServersAreSilentLeaveThemNoMoreWorkThanTheFirst) {
    for (redis_server& each : servers) {
        each.reset_stats();
        each.pause();
    }
    constexpr int attempts = 100;
    for (int i = 0; i < attempts; ++i) {
        const errc why = condition_of([&] {
            if (i % 2 == 0) {
                mine->try_acquire_for(2ms);
            } else {
                mine->try_acquire_shared_for(2ms);
            }
        });
        EXPECT_EQ(to_text(why), to_text(errc::no_quorum));
    }
    for (redis_server& each : servers) each.resume();
    EXPECT_TRUE(mine->try_acquire_for(an_age)) << "they have caught up";
    for (redis_server& each : servers) {
        // Two for the first attempt and two for the last; some more if the machine stalled so long that links broke.
        EXPECT_LE(each.command_calls("evalsha") + each.command_calls("eval"), attempts / 10);
    }
}

}  // namespace
}  // namespace holdfast::testing::quorum_shared_mutex_test
