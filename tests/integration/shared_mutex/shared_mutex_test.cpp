// The read-write lock on a real server: what is on the wire, std's guards, owners that re-enter in both modes, and what
// a refusal says. Waiting, upgrades and the life of a lease have files of their own.
#include <concepts>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "integration/shared_mutex/shared_mutex_fixture.hpp"

namespace holdfast::testing::shared_mutex_test {
namespace {

using SharedMutex = shared_mutex_fixture;

template <typename Lock>
concept shared_timed_lockable = requires(Lock lock, std::chrono::microseconds wait,
                                         std::chrono::system_clock::time_point deadline) {
    { lock.lock() } -> std::same_as<void>;
    { lock.try_lock() } -> std::same_as<bool>;
    { lock.try_lock_for(wait) } -> std::same_as<bool>;
    { lock.try_lock_until(deadline) } -> std::same_as<bool>;
    { lock.unlock() }
    noexcept->std::same_as<void>;
    { lock.lock_shared() } -> std::same_as<void>;
    { lock.try_lock_shared() } -> std::same_as<bool>;
    { lock.try_lock_shared_for(wait) } -> std::same_as<bool>;
    { lock.try_lock_shared_until(deadline) } -> std::same_as<bool>;
    { lock.unlock_shared() }
    noexcept->std::same_as<void>;
};
static_assert(shared_timed_lockable<shared_mutex>);
static_assert(shared_timed_lockable<striped_shared_mutex>);

// R20, R21, R23
TEST_F(SharedMutex, ManyReadTogether) {
    lease one = lock.acquire_shared();
    lease two = theirs.acquire_shared();
    EXPECT_EQ(field("mode"), "read");
    EXPECT_EQ(field("rcount"), "2");
    EXPECT_EQ(field("r:" + one.id()), "1");
    EXPECT_EQ(one.mode(), mode::shared);
    afterwards left;
    EXPECT_FALSE(one.release(left));
    EXPECT_EQ(left.holders, 1U);
    EXPECT_EQ(field("rcount"), "1");
    EXPECT_FALSE(two.release(left));
    EXPECT_EQ(left.holders, 0U);
    EXPECT_TRUE(free());
}

// R20, R22, R24
TEST_F(SharedMutex, OneWritesAlone) {
    lease writing = lock.acquire();
    EXPECT_EQ(field("mode"), "write");
    EXPECT_EQ(field("writer"), writing.id());
    EXPECT_EQ(field("wcount"), "1");
    EXPECT_EQ(field("rcount"), "");
    EXPECT_EQ(writing.mode(), mode::exclusive);
    EXPECT_FALSE(theirs.try_acquire_shared());
    EXPECT_FALSE(theirs.try_acquire());
    EXPECT_FALSE(writing.release());
    EXPECT_TRUE(free());
    const lease reading = theirs.acquire_shared();
    EXPECT_FALSE(lock.try_acquire());
    EXPECT_TRUE(lock.try_acquire_shared());
}

TEST_F(SharedMutex, WorksWithStdsGuards) {
    {
        const std::shared_lock reading{lock};
        EXPECT_EQ(field("mode"), "read");
        const std::shared_lock beside{theirs, std::try_to_lock};
        EXPECT_TRUE(beside.owns_lock());
    }
    catch_up();
    EXPECT_TRUE(free());
    {
        const std::lock_guard writing{lock};
        EXPECT_EQ(field("mode"), "write");
        EXPECT_FALSE((std::shared_lock{theirs, 20ms}.owns_lock()));
        EXPECT_FALSE((std::unique_lock{theirs, std::chrono::steady_clock::now() + 20ms}.owns_lock()));
    }
    catch_up();
    EXPECT_TRUE(free());
    mutex stock{subject, "stock"};
    {
        const std::scoped_lock both{stock, lock};
        EXPECT_EQ(field("mode"), "write");
        EXPECT_TRUE(exists("hf:{stock}"));
    }
    catch_up();
    EXPECT_TRUE(free());
    EXPECT_FALSE(exists("hf:{stock}"));
}

TEST_F(SharedMutex, TriesAndWaitsNoLongerThanToldTo) {
    const auto in_a_while = [] { return std::chrono::system_clock::now() + 30ms; };
    ASSERT_TRUE(theirs.try_lock());
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock_for(30ms));
    EXPECT_FALSE(lock.try_lock_until(in_a_while()));
    EXPECT_FALSE(lock.try_lock_shared());
    EXPECT_FALSE(lock.try_lock_shared_for(30ms));
    EXPECT_FALSE(lock.try_lock_shared_until(in_a_while()));
    EXPECT_FALSE(lock.try_acquire());
    EXPECT_FALSE(lock.try_acquire_for(30ms));
    EXPECT_FALSE(lock.try_acquire_until(in_a_while()));
    EXPECT_FALSE(lock.try_acquire_shared());
    EXPECT_FALSE(lock.try_acquire_shared_for(30ms));
    EXPECT_FALSE(lock.try_acquire_shared_until(in_a_while()));
    theirs.unlock();
    EXPECT_TRUE(lock.try_lock_shared_until(in_a_while() + an_age));
    lock.unlock_shared();
    EXPECT_TRUE(lock.try_acquire_until(in_a_while() + an_age));
    EXPECT_TRUE(lock.try_acquire_shared_for(an_age));
}

TEST_F(SharedMutex, TwoThreadsAreTwoOwners) {
    lock.lock_shared();
    std::thread([&] {
        EXPECT_FALSE(lock.try_lock());
        boost::system::error_code code;
        lock.unlock_shared(code);
        EXPECT_EQ(code, errc::not_held);
        EXPECT_TRUE(lock.try_lock_shared());
        EXPECT_EQ(readers(), 2);
        lock.unlock_shared();
    }).join();
    lock.unlock_shared();
}

TEST_F(SharedMutex, AReaderReEntersWithoutACommand) {
    lock.lock_shared();
    const auto before = script_calls();
    lock.lock_shared();
    EXPECT_TRUE(lock.try_lock_shared());
    EXPECT_EQ(readers(), 1) << "how often it entered is its own business";
    lock.unlock_shared();
    lock.unlock_shared();
    catch_up();
    EXPECT_EQ(script_calls(), before);
    EXPECT_FALSE(free());
    lock.unlock_shared();
    catch_up();
    EXPECT_TRUE(free());
}

// R21, R24: the automatic downgrade
TEST_F(SharedMutex, AWriterMayReadTooAndGoesOnReadingWhenItStopsWriting) {
    lock.lock();
    EXPECT_TRUE(lock.try_lock_shared());
    EXPECT_FALSE(theirs.try_lock_shared());
    lock.unlock();
    catch_up();
    EXPECT_EQ(field("mode"), "read");
    EXPECT_EQ(field("writer"), "");
    EXPECT_TRUE(theirs.try_lock_shared());
    EXPECT_FALSE(theirs.try_lock_for(1ms));
    theirs.unlock_shared();
    lock.unlock_shared();
    catch_up();
    EXPECT_TRUE(free());
}

// R22, R23: the reading side may go first
TEST_F(SharedMutex, AThreadThatReadsUpgradesByLockAndMayStopReadingFirst) {
    lock.lock_shared();
    lock.lock();
    EXPECT_EQ(field("mode"), "write");
    EXPECT_EQ(field("rcount"), "1");
    boost::system::error_code code;
    lock.unlock_shared(code);
    EXPECT_FALSE(code);
    subject.ping();  // behind it, on the same link
    EXPECT_EQ(field("mode"), "write");
    EXPECT_EQ(field("rcount"), "");
    EXPECT_EQ(field("wcount"), "1");
    EXPECT_FALSE(theirs.try_lock_shared());
    lock.unlock(code);
    EXPECT_FALSE(code);
    EXPECT_TRUE(free());
}

TEST_F(SharedMutex, AThreadThatReadsWaitsForOtherReadersToLeave) {
    lock.lock_shared();
    lease reading = theirs.acquire_shared();
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock_for(30ms));
    EXPECT_EQ(readers(), 2) << "it still reads";
    auto leaving = in_background([&] {
        const bool seen_waiting = queue_has(1);
        reading.release();
        return seen_waiting;
    });
    lock.lock();
    EXPECT_TRUE(result_of(leaving));
    EXPECT_EQ(field("mode"), "write");
    lock.unlock();
    lock.unlock_shared();
}

TEST_F(SharedMutex, UnlockingInTheWrongModeChangesNothing) {
    boost::system::error_code code;
    lock.unlock_shared(code);
    EXPECT_EQ(code, errc::not_held);
    lock.unlock(code);
    EXPECT_EQ(code, errc::not_held);
    lock.lock_shared();
    lock.unlock(code);
    EXPECT_EQ(code, errc::held_other_mode);
    lock.unlock();  // says nothing, does nothing
    catch_up();
    EXPECT_EQ(readers(), 1);
    lock.unlock_shared(code);
    EXPECT_FALSE(code);
    lock.lock();
    lock.unlock_shared(code);
    EXPECT_EQ(code, errc::held_other_mode);
    EXPECT_EQ(field("mode"), "write");
    lock.unlock(code);
    EXPECT_FALSE(code);
    EXPECT_TRUE(free());
}

TEST_F(SharedMutex, AnOwnersLeasesOfBothKindsAreOneHold) {
    const owner job;
    lease reading = lock.acquire_shared({.owner = job});
    lease writing = lock.try_acquire({.owner = job});
    ASSERT_TRUE(writing);
    lease again = lock.acquire_shared({.owner = job});
    EXPECT_EQ(reading.id(), writing.id());
    EXPECT_EQ(reading.token(), writing.token());
    EXPECT_FALSE(lock.try_acquire({.owner = owner()}));
    EXPECT_FALSE(writing.release());
    EXPECT_EQ(field("mode"), "read");
    EXPECT_FALSE(reading.release());
    EXPECT_EQ(readers(), 1);
    EXPECT_FALSE(again.release());
    EXPECT_TRUE(free());
}

TEST_F(SharedMutex, TheDepthIsThatOfBothModesTogether) {
    client shallow{server.url(), {.max_depth = 3}};
    shared_mutex deep{shallow, "catalog"};
    const owner job;
    lease reading = deep.acquire_shared({.owner = job});
    const lease writing = deep.acquire({.owner = job});
    lease third = deep.acquire_shared({.owner = job});
    EXPECT_EQ(condition_of([&] { deep.acquire_shared({.owner = job}); }), errc::too_deep);
    EXPECT_EQ(condition_of([&] { deep.acquire({.owner = job}); }), errc::too_deep);
    EXPECT_EQ(condition_of([&] { reading.upgrade(); }), errc::too_deep);
    third.release();
    EXPECT_TRUE(deep.try_acquire({.owner = job}));
}

TEST_F(SharedMutex, ReEnteringALostHoldIsRefusedUntilItIsReleased) {
    shared_mutex brief{subject, "catalog", {.lease = 150ms}};
    const owner job;
    lease held = brief.acquire_shared({.owner = job});
    server.call({"DEL", key, key + ":leases", key + ":grants"});
    ASSERT_TRUE(is_lost(held));
    EXPECT_EQ(condition_of([&] { brief.acquire_shared({.owner = job}); }), errc::lost);
    EXPECT_EQ(condition_of([&] { brief.acquire({.owner = job}); }), errc::lost);
    EXPECT_EQ(held.release(), errc::lost);
    EXPECT_TRUE(brief.try_acquire({.owner = job}));
}

// R31: why, who, and for how long
TEST_F(SharedMutex, ARefusalSaysWhyAndWhoAndForHowLong) {
    refusal why;
    const auto expect = [&why](errc code, const lease& holder) {
        EXPECT_EQ(to_text(why.code), to_text(code));
        EXPECT_EQ(why.holder, holder.id());
        ASSERT_TRUE(why.holder_left);
        EXPECT_GT(*why.holder_left, 0ms);
        EXPECT_LE(*why.holder_left, 20s);
        why = {};
    };
    lease writing = lock.acquire({.lease = 20s});
    EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
    expect(errc::write_held, writing);
    EXPECT_FALSE(theirs.try_acquire_shared({.why_not = &why}));
    expect(errc::write_held, writing);
    EXPECT_FALSE(theirs.try_acquire_shared_for(500ms, {.why_not = &why}));
    expect(errc::timed_out, writing);
    EXPECT_FALSE(theirs.try_acquire_for(500ms, {.why_not = &why}));
    expect(errc::timed_out, writing);
    writing.release();

    lease reading = lock.acquire_shared({.lease = 20s});
    EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
    expect(errc::read_held, reading);
    EXPECT_FALSE(theirs.try_acquire_for(500ms, {.why_not = &why}));
    expect(errc::timed_out, reading);

    std::stop_source stop;
    auto waiting = in_background([&] { return condition_of([&] { theirs.acquire({.stop = stop.get_token()}); }); });
    ASSERT_TRUE(queue_has(1));
    EXPECT_FALSE(theirs.try_acquire_shared({.why_not = &why}));
    expect(errc::reserved, reading);
    EXPECT_FALSE(theirs.try_acquire_shared_for(500ms, {.why_not = &why}));
    expect(errc::timed_out, reading);
    stop.request_stop();
    EXPECT_EQ(result_of(waiting), errc::cancelled);
}

// R31: and so does a release
TEST_F(SharedMutex, AReleaseTellsWhoIsLeft) {
    lease writing = lock.acquire();
    auto one = in_background([&] { return theirs.acquire_shared(); });
    ASSERT_TRUE(queue_has(1));
    auto two = in_background([&] { return lock.acquire_shared(); });
    ASSERT_TRUE(queue_has(2));
    auto last = in_background([&] { return theirs.acquire(); });
    ASSERT_TRUE(queue_has(3));
    afterwards left;
    EXPECT_FALSE(writing.release(left));
    EXPECT_EQ(left.holders, 2U);
    EXPECT_EQ(left.waiters, 1U);
    EXPECT_FALSE(result_of(one).release(left));
    EXPECT_EQ(left.holders, 1U);
    EXPECT_EQ(left.waiters, 1U);
    EXPECT_FALSE(result_of(two).release(left));
    EXPECT_EQ(left.holders, 1U) << "the writer has it now";
    EXPECT_EQ(left.waiters, 0U);
    EXPECT_FALSE(result_of(last).release(left));
    EXPECT_EQ(left.holders, 0U);
    EXPECT_EQ(lease().release(left), errc::not_held);
}

// R31
TEST_F(SharedMutex, AReleaseOfWhatIsGoneSaysSo) {
    const std::vector<std::string> all = {"DEL", key, key + ":leases", key + ":grants"};
    lease gone = lock.acquire_shared();
    server.call(all);
    EXPECT_EQ(gone.release(), errc::not_held);
    lease taken = lock.acquire_shared();
    server.call(all);
    const lease next = theirs.acquire();
    EXPECT_EQ(taken.release(), errc::held_by_other);
    EXPECT_EQ(field("writer"), next.id());
}

TEST_F(SharedMutex, StandsBesideAMutexInLockAll) {
    mutex stock{subject, "stock"};
    int together = 0;
    const auto work = [&](lockable& first, lockable& second) {
        for (int i = 0; i < 30; ++i) {
            const lock_all both{first, second};
            EXPECT_EQ(++together, 1);
            EXPECT_EQ(both[0].mode(), mode::exclusive);
            --together;
        }
    };
    std::thread one([&] { work(stock, lock); });
    std::thread two([&] { work(theirs, stock); });
    one.join();
    two.join();
}

TEST_F(SharedMutex, AMutexByTheSameNameIsAnErrorOfItsOwn) {
    mutex plain{other, "catalog"};
    {
        lease reading = lock.acquire_shared();
        expect_refusal(errc::wrong_type, other.server(), [&] { plain.acquire(); });
        expect_refusal(errc::wrong_type, "one side uses a mutex and the other a shared_mutex or a semaphore",
                       [&] { plain.lock(); });
        EXPECT_FALSE(reading.release());
    }
    {
        const lease held = plain.acquire();
        expect_refusal(errc::wrong_type, subject.server(), [&] { lock.acquire_shared(); });
        expect_refusal(errc::wrong_type, subject.server(), [&] { lock.try_acquire(); });
    }
}

TEST_F(SharedMutex, AMutexByTheSameNameIsAnErrorForOneOwnerToo) {
    mutex plain{subject, "catalog"};
    const owner job;
    {
        const lease reading = lock.acquire_shared({.owner = job});
        expect_refusal(errc::wrong_type, subject.server(), [&] { plain.acquire({.owner = job}); });
    }
    {
        const lease held = plain.acquire({.owner = job});
        expect_refusal(errc::wrong_type, subject.server(), [&] { lock.acquire_shared({.owner = job}); });
        expect_refusal(errc::wrong_type, subject.server(), [&] { lock.acquire({.owner = job}); });
    }
}

}  // namespace
}  // namespace holdfast::testing::shared_mutex_test
