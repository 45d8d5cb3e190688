// The striped read-write lock on a real server: R34.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "integration/shared_mutex/shared_mutex_fixture.hpp"

namespace holdfast::testing::striped_shared_mutex_test {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t stripes = 4;

class StripedSharedMutex : public shared_mutex_fixture {
protected:
    static std::string stripe(std::size_t number) { return "hf:{hot#" + std::to_string(number) + "}"; }

    /// When all that was given back by now is.
    std::size_t stripes_in_use() {
        catch_up();
        std::size_t count = 0;
        for (std::size_t i = 0; i < stripes; ++i) count += exists(stripe(i)) ? 1U : 0U;
        return count;
    }

    /// Somebody who reads just that stripe.
    lease reader_of(striped_shared_mutex& of, std::size_t number) {
        for (std::size_t tries = 0; tries < 2 * stripes; ++tries) {
            lease reading = of.acquire_shared();
            if (exists(stripe(number)) && stripes_in_use() == 1) return reading;
        }
        ADD_FAILURE() << "readers do not spread over the stripes";
        return {};
    }

    void lose(std::size_t number) {
        server.call({"DEL", stripe(number), stripe(number) + ":leases", stripe(number) + ":grants"});
    }

    [[nodiscard]] bool somebody_waits_at(std::size_t number) {
        return eventually([&] { return server.call({"ZCARD", stripe(number) + ":queue"}).integer == 1; });
    }

    striped_shared_mutex hot{subject, "hot", stripes};
    striped_shared_mutex hot_too{other, "hot", stripes};
};

TEST_F(StripedSharedMutex, HasANameAndAReasonableNumberOfStripes) {
    EXPECT_EQ(hot.name(), "hot");
    EXPECT_EQ(hot.stripes(), stripes);
    EXPECT_EQ(condition_of([&] { striped_shared_mutex(subject, "hot", 0); }), errc::bad_option);
    EXPECT_EQ(condition_of([&] { striped_shared_mutex(subject, "hot", 1025); }), errc::bad_option);
    EXPECT_EQ(condition_of([&] { striped_shared_mutex(subject, "", 2); }), errc::bad_name);
}

// R34: a reader takes one stripe
TEST_F(StripedSharedMutex, ReadersSpreadOverTheStripesAndTakeOneEach) {
    std::vector<lease> reading;
    for (std::size_t i = 0; i < 2 * stripes; ++i) reading.push_back(hot.acquire_shared());
    for (std::size_t i = 0; i < stripes; ++i) {
        EXPECT_EQ(server.call({"HGET", stripe(i), "rcount"}).text, "2") << i;
    }
    EXPECT_TRUE(hot_too.try_acquire_shared());
    EXPECT_TRUE(hot_too.try_acquire_shared_for(1s));
}

TEST_F(StripedSharedMutex, AnOwnerReadsTheSameStripeAgainWithoutACommand) {
    const owner job;
    const lease outer = hot.acquire_shared({.owner = job});
    const auto before = script_calls();
    const lease inner = hot.acquire_shared({.owner = job});
    EXPECT_EQ(inner.id(), outer.id());
    EXPECT_EQ(script_calls(), before);
    EXPECT_EQ(stripes_in_use(), 1U);
}

// R34: a writer takes all of them
TEST_F(StripedSharedMutex, AWriterExcludesAllReadersAndWriters) {
    hot.lock();
    EXPECT_EQ(stripes_in_use(), stripes);
    for (std::size_t i = 0; i < stripes; ++i) {
        EXPECT_EQ(server.call({"HGET", stripe(i), "mode"}).text, "write");
        EXPECT_FALSE(hot_too.try_acquire_shared()) << "whatever its stripe is";
    }
    EXPECT_FALSE(hot_too.try_lock());
    EXPECT_FALSE(hot_too.try_lock_until(std::chrono::system_clock::now() + 20ms));
    EXPECT_FALSE(hot_too.try_acquire());
    hot.unlock();
    EXPECT_EQ(stripes_in_use(), 0U);
}

TEST_F(StripedSharedMutex, WorksWithStdsGuards) {
    {
        const std::shared_lock reading{hot};
        EXPECT_TRUE((std::shared_lock{hot_too, std::try_to_lock}.owns_lock()));
        EXPECT_FALSE((std::unique_lock{hot_too, std::try_to_lock}.owns_lock()));
    }
    {
        const std::scoped_lock writing{hot};
        EXPECT_FALSE((std::shared_lock{hot_too, 20ms}.owns_lock()));
    }
    EXPECT_EQ(stripes_in_use(), 0U);
}

TEST_F(StripedSharedMutex, AWriterMayReadTooAndGoesOnReadingWhenItStopsWriting) {
    hot.lock();
    hot.lock();
    hot.lock_shared();
    hot.unlock();
    EXPECT_EQ(stripes_in_use(), stripes);
    hot.unlock();
    EXPECT_EQ(stripes_in_use(), 1U);
    hot.unlock_shared();
    EXPECT_EQ(stripes_in_use(), 0U);
}

TEST_F(StripedSharedMutex, AWriterThatCannotHaveAllInTimeLeavesNothingBehind) {
    const lease in_the_way = reader_of(hot_too, stripes - 1);
    EXPECT_FALSE(hot.try_lock());
    EXPECT_EQ(stripes_in_use(), 1U);
    EXPECT_FALSE(hot.try_lock_for(30ms));
    EXPECT_EQ(stripes_in_use(), 1U);
    refusal why;
    EXPECT_FALSE(hot.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.code, errc::read_held);
    EXPECT_EQ(why.holder, in_the_way.id());
    // Where the machine stalls until then, the deadline has passed before the wait begins.
    EXPECT_TRUE(eventually([&] {
        EXPECT_FALSE(hot.try_acquire_for(30ms, {.why_not = &why}));
        return why.code == errc::timed_out;
    }));
    EXPECT_EQ(stripes_in_use(), 1U);
    std::stop_source stop;
    auto writer = in_background([&] { return condition_of([&] { hot.acquire({.stop = stop.get_token()}); }); });
    ASSERT_TRUE(somebody_waits_at(stripes - 1));
    stop.request_stop();
    EXPECT_EQ(result_of(writer), errc::cancelled);
    EXPECT_EQ(stripes_in_use(), 1U);
    EXPECT_TRUE(hot.try_acquire_shared());
}

// R34: it would deadlock
TEST_F(StripedSharedMutex, UpgradesAreRefused) {
    lease reading = hot.acquire_shared();
    EXPECT_EQ(condition_of([&] { reading.upgrade(); }), errc::would_deadlock);
    EXPECT_EQ(condition_of([&] { reading.try_upgrade(); }), errc::would_deadlock);
    EXPECT_FALSE(reading.renew()) << "it reads as before";
    hot.lock_shared();
    EXPECT_EQ(condition_of([&] { hot.lock(); }), errc::would_deadlock);
    EXPECT_EQ(condition_of([&] { hot.try_lock(); }), errc::would_deadlock);
    EXPECT_EQ(condition_of([&] { hot.try_lock_for(1s); }), errc::would_deadlock);
    hot.unlock_shared();
    const owner job;
    const lease owned = hot.acquire_shared({.owner = job});
    EXPECT_EQ(condition_of([&] { hot.acquire({.owner = job}); }), errc::would_deadlock);
}

// A writer has the first stripe and waits for the one that the caller reads: to wait behind it is to wait for ever.
TEST_F(StripedSharedMutex, AReaderThatWantsToWriteIsRefusedEvenIfAWriterIsBeforeIt) {
    for (std::size_t tries = 0; tries < stripes; ++tries) {
        const owner job;
        lease reading = hot.acquire_shared({.owner = job});
        if (exists(stripe(0))) continue;  // there it would be refused anyway
        auto writer = in_background([&] { return hot_too.acquire(); });
        ASSERT_TRUE(eventually([&] { return exists(stripe(0)); }));
        EXPECT_EQ(condition_of([&] { hot.try_acquire_for(2s, {.owner = job}); }), errc::would_deadlock);
        std::promise<error_code> told;
        hot.async_acquire({.owner = job}, [&](error_code code, striped_lease) { told.set_value(code); });
        auto result = told.get_future();
        EXPECT_EQ(result_of(result), errc::would_deadlock);
        reading.release();
        result_of(writer).release();
    }
}

TEST_F(StripedSharedMutex, ALeaseIsThatOfAllStripes) {
    striped_lease nothing;
    EXPECT_FALSE(nothing);
    EXPECT_EQ(nothing.token(), 0U);
    EXPECT_EQ(nothing.validity(), 0ms);
    EXPECT_EQ(nothing.release(), errc::not_held);
    striped_lease held = hot.acquire();
    const auto token = held.token();
    EXPECT_GT(held.validity(), 0ms);
    EXPECT_FALSE(held.lost().stop_requested());
    striped_lease moved = std::move(held);
    EXPECT_FALSE(held);
    EXPECT_EQ(moved.token(), token);
    EXPECT_FALSE(moved.release());
    EXPECT_EQ(stripes_in_use(), 0U);
    moved = hot_too.acquire();
    EXPECT_GT(moved.token(), token);
    moved = striped_lease();
    EXPECT_EQ(stripes_in_use(), 0U);
}

// R44
TEST_F(StripedSharedMutex, ALeaseIsLostWithAnyOfItsStripes) {
    striped_shared_mutex brief{subject, "hot", stripes, {.lease = 400ms}};
    for (std::size_t number : {std::size_t{0}, stripes - 1}) {
        striped_lease held = brief.acquire();
        lose(number);
        EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
        EXPECT_LE(held.validity(), 0ms);
        EXPECT_EQ(held.release(), errc::lost);
        EXPECT_EQ(stripes_in_use(), 0U) << "the others are given up all the same";
    }
}

TEST_F(StripedSharedMutex, ACallbackOfLostMayReleaseTheLease) {
    striped_shared_mutex brief{subject, "hot", stripes, {.lease = 400ms}};
    striped_lease held = brief.acquire();
    std::promise<error_code> released;
    const std::stop_callback on_lost{held.lost(), [&] { released.set_value(held.release()); }};
    lose(1);
    auto result = released.get_future();
    EXPECT_EQ(result_of(result), errc::lost);
    EXPECT_FALSE(held);
}

TEST_F(StripedSharedMutex, MayBeTakenAsynchronously) {
    lease reading = hot.async_acquire_shared({}, asio::use_future).get();
    EXPECT_EQ(reading.mode(), mode::shared);
    EXPECT_EQ(stripes_in_use(), 1U);
    auto writing = hot_too.async_acquire({}, asio::use_future);
    EXPECT_FALSE(is_ready(writing, 20ms));
    reading.release();
    striped_lease held = result_of(writing);
    EXPECT_EQ(stripes_in_use(), stripes);
    EXPECT_FALSE(held.release());
}

TEST_F(StripedSharedMutex, CoroutinesTakeTurns) {
    asio::io_context mine;
    int writing = 0;
    int sections = 0;
    const auto write = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < 5; ++i) {
            striped_lease held = co_await hot.async_acquire({}, asio::use_awaitable);
            EXPECT_EQ(++writing, 1);
            co_await asio::post(mine, asio::use_awaitable);
            --writing;
            ++sections;
        }
    };
    const auto read = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < 5; ++i) {
            lease held = co_await hot.async_acquire_shared({}, asio::use_awaitable);
            EXPECT_EQ(writing, 0);
            co_await asio::post(mine, asio::use_awaitable);
            EXPECT_EQ(writing, 0);
            ++sections;
            co_await held.async_release(asio::use_awaitable);
        }
    };
    std::vector<std::future<void>> all;
    for (int i = 0; i < 2; ++i) {
        all.push_back(asio::co_spawn(mine, write(), asio::use_future));
        all.push_back(asio::co_spawn(mine, read(), asio::use_future));
    }
    mine.run();
    for (auto& each : all) each.get();
    EXPECT_EQ(sections, 20);
}

TEST_F(StripedSharedMutex, ACancelledWaitReleasesTheStripesItHeld) {
    for (const auto kind :
         {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
        const lease in_the_way = reader_of(hot_too, stripes - 1);
        asio::io_context mine;
        asio::cancellation_signal cancel;
        error_code result;
        hot.async_acquire({}, asio::bind_cancellation_slot(
                                  cancel.slot(), asio::bind_executor(mine, [&](error_code code, striped_lease held) {
                                      EXPECT_FALSE(held);
                                      result = code;
                                  })));
        std::thread running([&] { mine.run(); });
        ASSERT_TRUE(somebody_waits_at(stripes - 1));
        asio::post(mine, [&] { cancel.emit(kind); });
        running.join();
        EXPECT_EQ(result, asio::error::operation_aborted);
        EXPECT_TRUE(eventually([&] { return stripes_in_use() == 1; }));
    }
}

TEST_F(StripedSharedMutex, AWaitThatFailsReleasesTheStripesItHeld) {
    server.call({"SET", stripe(2), "no lock of this kind", "PX", "60000"});
    std::promise<error_code> told;
    hot.async_acquire({}, [&](error_code code, striped_lease held) {
        EXPECT_FALSE(held);
        told.set_value(code);
    });
    auto result = told.get_future();
    EXPECT_EQ(result_of(result), errc::wrong_type);
    EXPECT_EQ(condition_of([&] { hot.lock(); }), errc::wrong_type);
    EXPECT_EQ(condition_of([&] { hot.acquire(); }), errc::wrong_type);
    server.call({"DEL", stripe(2)});
    EXPECT_TRUE(eventually([&] { return stripes_in_use() == 0; }));
}

// R62: a writer that waits for the last stripe for longer than its lease of the first one does not go in without that.
class StripedSharedMutexThatLosesAStripe : public StripedSharedMutex {
protected:
    // The first stripe is lost while the writer waits in the queue of the third one.
    template <typename Acquire>
    void expect_all_stripes(Acquire acquire) {
        lease reading = reader_of(hot_too, 2);
        std::jthread writer([&] { acquire(); });
        ASSERT_TRUE(somebody_waits_at(2));
        ASSERT_TRUE(eventually([&] { return !exists(stripe(0)); }, 30s)) << "its fixed lease ends";
        reading.release();
        writer.join();
        EXPECT_EQ(stripes_in_use(), stripes);
        for (std::size_t i = 0; i < stripes; ++i)
            EXPECT_EQ(server.call({"HGET", stripe(i), "mode"}).text, "write") << i;
    }

    // Long enough to be checked after the acquisition, also on a busy machine.
    striped_shared_mutex fixed{subject, "hot", stripes, {.lease = 5s, .renew = false}};
};

TEST_F(StripedSharedMutexThatLosesAStripe, TakesThemAllAnewAsALease) {
    striped_lease writing;
    expect_all_stripes([&] { writing = fixed.acquire(); });
    EXPECT_GT(writing.validity(), 0ms);
}

TEST_F(StripedSharedMutexThatLosesAStripe, TakesThemAllAnewAsAThread) {
    lease reading = reader_of(hot_too, 2);
    std::promise<void> locked;
    std::promise<void> seen;
    const std::jthread owner([&] {  // last: it is joined before what it looks at goes
        fixed.lock();
        locked.set_value();
        seen.get_future().wait();
        fixed.unlock();
    });
    ASSERT_TRUE(somebody_waits_at(2));
    ASSERT_TRUE(eventually([&] { return !exists(stripe(0)); }, 30s)) << "its fixed lease ends";
    reading.release();
    locked.get_future().wait();
    EXPECT_EQ(stripes_in_use(), stripes);
    seen.set_value();
}

TEST_F(StripedSharedMutexThatLosesAStripe, TakesThemAllAnewAsynchronously) {
    striped_lease writing;
    expect_all_stripes([&] { writing = fixed.async_acquire({}, asio::use_future).get(); });
    EXPECT_GT(writing.validity(), 0ms);
}

}  // namespace
}  // namespace holdfast::testing::striped_shared_mutex_test
