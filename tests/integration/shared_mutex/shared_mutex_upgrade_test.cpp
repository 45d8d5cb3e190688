// Upgrade and downgrade on a real server: R22, R24, R26, R27, R31.
#include <thread>

#include "integration/shared_mutex/shared_mutex_fixture.hpp"

namespace holdfast::testing::shared_mutex_upgrade_test {
namespace {

class SharedMutexUpgrade : public shared_mutex_fixture, public ::testing::WithParamInterface<prefer> {
protected:
    /// An upgrade of `reading` that waits in the queue.
    std::future<lease> upgrading(lease& reading, std::stop_token stop = {}) {
        auto started = in_background([&reading, stop] { return reading.upgrade({.stop = stop}); });
        EXPECT_TRUE(queue_has(1));
        return started;
    }

    void lose_everything() { server.call({"DEL", key, key + ":leases", key + ":grants"}); }
};

// R22, R26, R27
TEST_F(SharedMutexUpgrade, OfTheOnlyReaderIsOneCommandAndSoIsTheDowngrade) {
    warm_up();
    lease reading = lock.acquire_shared();
    const auto read_token = reading.token();
    server.reset_stats();
    lease writing = reading.upgrade();
    EXPECT_EQ(script_calls(), 1);
    EXPECT_EQ(field("mode"), "write");
    EXPECT_EQ(field("writer"), reading.id());
    EXPECT_EQ(field("rcount"), "1");
    EXPECT_GT(writing.token(), read_token);
    EXPECT_EQ(reading.token(), writing.token()) << "one hold, one token";
    EXPECT_EQ(writing.id(), reading.id());
    EXPECT_EQ(writing.mode(), mode::exclusive);
    lease again = writing.downgrade();
    EXPECT_EQ(script_calls(), 2);
    EXPECT_FALSE(writing);
    EXPECT_EQ(again.mode(), mode::shared);
    EXPECT_EQ(field("mode"), "read");
    EXPECT_FALSE(theirs.try_acquire_shared().release());
    EXPECT_FALSE(again.release());
    EXPECT_FALSE(free()) << "the first lease still reads";
    EXPECT_FALSE(reading.release());
    EXPECT_TRUE(free());
}

// R26: it makes the lease full again
TEST_F(SharedMutexUpgrade, RefreshesAFixedLease) {
    shared_mutex fixed{subject, "catalog", {.lease = 20s, .renew = false}};
    lease reading = fixed.acquire_shared();
    ASSERT_TRUE(eventually([&] { return reading.validity() < 19700ms; }));
    const auto before = reading.validity();
    const lease writing = reading.upgrade();
    EXPECT_GT(writing.validity(), before);
    EXPECT_EQ(reading.validity() > before, true);
}

TEST_P(SharedMutexUpgrade, WaitsForTheOtherReadersAndKeepsNewOnesOut) {
    shared_mutex mine{subject, "catalog", {.prefer = GetParam()}};
    shared_mutex others{other, "catalog", {.prefer = GetParam()}};
    lease reading = mine.acquire_shared();
    lease in_the_way = others.acquire_shared();
    auto writing = upgrading(reading);
    refusal why;
    EXPECT_FALSE(others.try_acquire_shared({.why_not = &why}));
    EXPECT_EQ(why.code, errc::reserved);
    EXPECT_FALSE(is_ready(writing));
    in_the_way.release();
    const lease got = result_of(writing);
    EXPECT_EQ(field("mode"), "write");
    EXPECT_EQ(field("writer"), reading.id());
}

TEST_P(SharedMutexUpgrade, IsBeforeEverybodyInTheQueue) {
    shared_mutex mine{subject, "catalog", {.prefer = GetParam()}};
    shared_mutex others{other, "catalog", {.prefer = GetParam()}};
    lease reading = mine.acquire_shared();
    lease in_the_way = others.acquire_shared();
    auto writer = in_background([&] { return others.acquire(); });
    ASSERT_TRUE(queue_has(1));
    auto writing = in_background([&] { return reading.upgrade(); });
    ASSERT_TRUE(queue_has(2));
    in_the_way.release();
    lease upgraded = result_of(writing);
    EXPECT_FALSE(is_ready(writer));
    upgraded.release();
    reading.release();
    result_of(writer).release();
}

INSTANTIATE_TEST_SUITE_P(EveryPreference, SharedMutexUpgrade,
                         ::testing::Values(prefer::arrival, prefer::readers, prefer::writers));

// R31; 002 waits for ever there
TEST_F(SharedMutexUpgrade, OfASecondReaderIsRefusedAtOnceAndLeavesItReading) {
    lease first = lock.acquire_shared();
    lease second = theirs.acquire_shared();
    auto writing = upgrading(first);
    refusal why;
    EXPECT_EQ(condition_of([&] { second.upgrade({.why_not = &why}); }), errc::would_deadlock);
    EXPECT_EQ(why.code, errc::would_deadlock);
    EXPECT_TRUE(why.holder_left);
    EXPECT_EQ(condition_of([&] { second.try_upgrade(); }), errc::would_deadlock);
    EXPECT_EQ(condition_of([&] { second.try_upgrade_for(10s); }), errc::would_deadlock);
    EXPECT_EQ(readers(), 2);
    EXPECT_FALSE(second.renew()) << "it reads as before";
    EXPECT_FALSE(is_ready(writing));
    second.release();
    EXPECT_TRUE(result_of(writing)) << "now one of the two can go on";
}

// R26, R31
TEST_F(SharedMutexUpgrade, ThatDoesNotWaitSaysWhoReads) {
    lease reading = lock.acquire_shared();
    const lease in_the_way = theirs.acquire_shared();
    refusal why;
    EXPECT_FALSE(reading.try_upgrade({.why_not = &why}));
    EXPECT_EQ(why.code, errc::read_held);
    EXPECT_TRUE(why.holder_left);
    EXPECT_EQ(readers(), 2);
    EXPECT_TRUE(theirs.try_acquire_shared()) << "nobody waits";
}

// R26, R31
TEST_F(SharedMutexUpgrade, ThatTimesOutLeavesReadingUntouchedAndLetsNewReadersIn) {
    lease reading = lock.acquire_shared();
    const lease in_the_way = theirs.acquire_shared();
    const auto token = reading.token();
    refusal why;
    EXPECT_FALSE(reading.try_upgrade_for(500ms, {.why_not = &why}));
    EXPECT_EQ(why.code, errc::timed_out);
    EXPECT_FALSE(why.holder.empty());
    ASSERT_TRUE(why.holder_left);
    EXPECT_GT(*why.holder_left, 0ms);
    EXPECT_FALSE(reading.try_upgrade_until(std::chrono::system_clock::now() + 30ms));
    EXPECT_FALSE(reading.upgrade_for(30ms)) << "the former name";
    EXPECT_FALSE(reading.upgrade_until(std::chrono::system_clock::now() + 30ms)) << "the former name";
    EXPECT_EQ(reading.token(), token);
    EXPECT_EQ(reading.mode(), mode::shared);
    EXPECT_TRUE(queue_has(0));
    EXPECT_TRUE(theirs.try_acquire_shared());
    EXPECT_FALSE(reading.renew());
    EXPECT_EQ(field("mode"), "read");
}

// R26
TEST_F(SharedMutexUpgrade, ThatIsStoppedLeavesReadingUntouchedAndLetsWaitingReadersIn) {
    lease reading = lock.acquire_shared();
    const lease in_the_way = theirs.acquire_shared();
    std::stop_source stop;
    auto writing = in_background([&] { return condition_of([&] { reading.upgrade({.stop = stop.get_token()}); }); });
    ASSERT_TRUE(queue_has(1));
    auto kept_out = in_background([&] { return theirs.acquire_shared(); });
    ASSERT_TRUE(queue_has(2));
    stop.request_stop();
    EXPECT_EQ(result_of(writing), errc::cancelled);
    EXPECT_TRUE(result_of(kept_out));
    EXPECT_FALSE(reading.renew());
    EXPECT_FALSE(reading.release());
}

TEST_F(SharedMutexUpgrade, StoppedBeforeItStartsAsksNothing) {
    lease reading = lock.acquire_shared();
    std::stop_source stop;
    stop.request_stop();
    const auto before = script_calls();
    EXPECT_EQ(condition_of([&] { reading.upgrade({.stop = stop.get_token()}); }), errc::cancelled);
    EXPECT_EQ(script_calls(), before);
    EXPECT_TRUE(reading.try_upgrade());
}

TEST_F(SharedMutexUpgrade, OfALostHoldSaysSo) {
    shared_mutex brief{subject, "catalog", {.lease = 300ms}};
    lease told = brief.acquire_shared();
    lose_everything();
    ASSERT_TRUE(is_lost(told));
    EXPECT_EQ(condition_of([&] { told.upgrade(); }), errc::lost);
    EXPECT_EQ(told.release(), errc::lost);
    lease unaware = lock.acquire_shared();
    lose_everything();
    EXPECT_EQ(condition_of([&] { unaware.upgrade(); }), errc::lost) << "it learns by asking";
    EXPECT_TRUE(is_lost(unaware));
}

TEST_F(SharedMutexUpgrade, IsForLeasesThatRead) {
    lease writing = lock.acquire();
    EXPECT_EQ(condition_of([&] { writing.upgrade(); }), errc::held_other_mode);
    EXPECT_TRUE(writing) << "it stays as it is";
    mutex stock{subject, "stock"};
    lease held = stock.acquire();
    EXPECT_EQ(condition_of([&] { held.try_upgrade(); }), errc::held_other_mode);
    lease nothing;
    EXPECT_EQ(condition_of([&] { nothing.upgrade(); }), errc::not_held);
}

TEST_F(SharedMutexUpgrade, OfAHoldThatWritesAlreadyIsOneLevelMore) {
    lease reading = lock.acquire_shared();
    lease writing = reading.upgrade();
    const auto before = script_calls();
    lease again = reading.upgrade();
    EXPECT_EQ(script_calls(), before);
    EXPECT_FALSE(writing.release());
    EXPECT_EQ(field("mode"), "write");
    EXPECT_FALSE(again.release());
    EXPECT_EQ(field("mode"), "read");
}

TEST_F(SharedMutexUpgrade, ASecondOneOfTheSameHoldIsRefusedWhileTheFirstWaits) {
    const owner job;
    lease one = lock.acquire_shared({.owner = job});
    lease two = lock.acquire_shared({.owner = job});
    lease in_the_way = theirs.acquire_shared();
    auto writing = upgrading(one);
    EXPECT_EQ(condition_of([&] { two.upgrade(); }), errc::too_many);
    EXPECT_EQ(condition_of([&] { lock.try_acquire({.owner = job}); }), errc::too_many);
    in_the_way.release();
    EXPECT_TRUE(result_of(writing));
}

TEST_F(SharedMutexUpgrade, OneLeaseOfTheHoldMayGoWhileAnotherWaitsForIt) {
    const owner job;
    lease one = lock.acquire_shared({.owner = job});
    lease two = lock.acquire_shared({.owner = job});
    lease in_the_way = theirs.acquire_shared();
    auto writing = upgrading(one);
    EXPECT_FALSE(two.release());
    EXPECT_FALSE(is_ready(writing));
    in_the_way.release();
    EXPECT_TRUE(result_of(writing));
}

TEST_F(SharedMutexUpgrade, EndsWithTheWritingLeaseAndReadingGoesOn) {
    lease reading = lock.acquire_shared();
    { const lease writing = reading.upgrade(); }
    catch_up();
    EXPECT_EQ(field("mode"), "read");
    EXPECT_EQ(field("writer"), "");
    EXPECT_EQ(field("wcount"), "");
    EXPECT_EQ(readers(), 1);
}

TEST_F(SharedMutexUpgrade, IsLostTogetherWithReading) {
    shared_mutex brief{subject, "catalog", {.lease = 2s}};
    lease reading = brief.acquire_shared();
    lease writing = reading.upgrade();
    lose_everything();
    EXPECT_TRUE(is_lost(writing));
    EXPECT_TRUE(is_lost(reading));
    EXPECT_EQ(writing.release(), errc::lost);
    EXPECT_EQ(reading.release(), errc::lost);
}

// R27; Redisson forgets to wake them
TEST_F(SharedMutexUpgrade, TheDowngradeWakesTheReadersAndNotTheWriter) {
    lease writing = lock.acquire();
    auto one = in_background([&] { return theirs.acquire_shared(); });
    ASSERT_TRUE(queue_has(1));
    auto two = in_background([&] { return lock.acquire_shared(); });
    ASSERT_TRUE(queue_has(2));
    auto writer = in_background([&] { return theirs.acquire(); });
    ASSERT_TRUE(queue_has(3));
    lease reading = writing.downgrade();
    lease first = result_of(one);
    lease second = result_of(two);
    EXPECT_EQ(readers(), 3);
    EXPECT_EQ(field("writer"), "") << "a plain writer that downgrades only reads";
    EXPECT_FALSE(is_ready(writer));
    for (lease* const each : {&reading, &first, &second}) EXPECT_FALSE(each->release());
    EXPECT_TRUE(result_of(writer));
}

TEST_F(SharedMutexUpgrade, TheDowngradeIsForLeasesThatWrite) {
    lease reading = lock.acquire_shared();
    EXPECT_EQ(condition_of([&] { reading.downgrade(); }), errc::held_other_mode);
    EXPECT_TRUE(reading);
    mutex stock{subject, "stock"};
    lease held = stock.acquire();
    EXPECT_EQ(condition_of([&] { held.downgrade(); }), errc::held_other_mode);
    EXPECT_TRUE(held);
    lease nothing;
    EXPECT_EQ(condition_of([&] { nothing.downgrade(); }), errc::not_held);
}

TEST_F(SharedMutexUpgrade, ADowngradedLeaseMayUpgradeAgain) {
    lease held = lock.acquire();
    for (int i = 0; i < 3; ++i) {
        const auto token = held.token();
        lease reading = held.downgrade();
        held = reading.upgrade();
        EXPECT_GT(held.token(), token);
    }
    catch_up();
    EXPECT_EQ(field("mode"), "write");
    EXPECT_EQ(field("rcount"), "") << "reading went with its lease";
}

}  // namespace
}  // namespace holdfast::testing::shared_mutex_upgrade_test
