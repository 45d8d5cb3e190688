// The asynchronous operations on a real server: every kind of completion token, and cancellation at every point.
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::async_test {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using boost::system::error_code;

class Async : public ::testing::Test {
protected:
    bool nobody_waits() { return server.call({"EXISTS", "hf:{stock}:queue"}).integer == 0; }
    bool free() { return server.call({"EXISTS", "hf:{stock}"}).integer == 0; }

    redis_server server;
    client subject{server.url()};
    mutex stock{subject, "stock"};
};

TEST_F(Async, AFutureGetsTheLease) {
    lease held = stock.async_acquire(asio::use_future).get();
    EXPECT_TRUE(held);
    EXPECT_GT(held.token(), 0U);
    held.async_renew(asio::use_future).get();
    held.async_release(asio::use_future).get();
    EXPECT_FALSE(held);
    EXPECT_TRUE(free());
}

TEST_F(Async, AHandlerWithoutAnExecutorRunsOnAThreadOfTheLibrary) {
    std::promise<std::thread::id> ran_on;
    stock.async_try_acquire([&](error_code code, lease held) {
        EXPECT_FALSE(code);
        EXPECT_TRUE(held);
        ran_on.set_value(std::this_thread::get_id());
    });
    EXPECT_NE(ran_on.get_future().get(), std::this_thread::get_id());
}

TEST_F(Async, AHandlerRunsOnItsOwnExecutor) {
    asio::io_context mine;
    std::thread::id ran_on;
    stock.async_acquire(
        asio::bind_executor(mine, [&](error_code, const lease&) { ran_on = std::this_thread::get_id(); }));
    mine.run();  // has outstanding work until the handler has run
    EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST_F(Async, TryingForATakenLockSaysBusyAndWaitingTooShortlyTimedOut) {
    const lease other = stock.acquire();
    std::promise<error_code> tried;
    stock.async_try_acquire([&](error_code code, lease held) {
        EXPECT_FALSE(held);
        tried.set_value(code);
    });
    EXPECT_EQ(tried.get_future().get(), errc::busy);
    std::promise<error_code> waited;
    stock.async_try_acquire_for(50ms, [&](error_code code, const lease&) { waited.set_value(code); });
    EXPECT_EQ(waited.get_future().get(), errc::timed_out);
    EXPECT_TRUE(eventually([&] { return nobody_waits(); }));
}

TEST_F(Async, ARefusalNamesLockServerAndHolder) {
    const lease other = stock.acquire();
    refusal why;
    std::promise<error_code> tried;
    stock.async_try_acquire({.why_not = &why}, [&](error_code code, const lease&) { tried.set_value(code); });
    EXPECT_EQ(tried.get_future().get(), errc::busy);
    EXPECT_EQ(why.code, errc::busy);
    EXPECT_EQ(why.holder, other.id());
    EXPECT_NE(why.detail.find("lock 'stock' on " + subject.server()), std::string::npos) << why.detail;
    mutex kept{subject, "kept", {.keep = 1s}};
    const lease local = kept.acquire();
    std::promise<error_code> refused_locally;
    kept.async_try_acquire({.why_not = &why}, [&](error_code code, const lease&) { refused_locally.set_value(code); });
    EXPECT_EQ(refused_locally.get_future().get(), errc::busy);
    EXPECT_NE(why.detail.find("lock 'kept' on " + subject.server()), std::string::npos) << why.detail;
    server.call({"LPUSH", "hf:{no lock}", "x"});
    mutex odd{subject, "no lock"};
    std::promise<error_code> refused;
    odd.async_acquire({.why_not = &why}, [&](error_code code, const lease&) { refused.set_value(code); });
    EXPECT_EQ(refused.get_future().get(), errc::wrong_type);
    EXPECT_NE(why.detail.find("lock 'no lock'"), std::string::npos) << why.detail;
    EXPECT_NE(why.detail.find(subject.server()), std::string::npos) << why.detail;
}

TEST_F(Async, CoroutinesTakeTurns) {
    asio::io_context mine;
    int inside = 0;
    int sections = 0;
    const auto work = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < 20; ++i) {
            lease held = co_await stock.async_acquire(asio::use_awaitable);
            EXPECT_EQ(++inside, 1);
            co_await asio::post(mine, asio::use_awaitable);
            --inside;
            ++sections;
            co_await held.async_release(asio::use_awaitable);
        }
    };
    for (int i = 0; i < 4; ++i) asio::co_spawn(mine, work(), asio::detached);
    mine.run();
    EXPECT_EQ(sections, 80);
    EXPECT_TRUE(free());
}

TEST_F(Async, ACancelledWaitEndsAndLeavesTheQueue) {
    const lease other = stock.acquire();
    asio::io_context mine;
    asio::cancellation_signal cancel;
    error_code result;
    stock.async_acquire(
        asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(mine, [&](error_code code, const lease& held) {
                                         EXPECT_FALSE(held);
                                         result = code;
                                     })));
    EXPECT_TRUE(eventually([&] { return !nobody_waits(); }));
    cancel.emit(asio::cancellation_type::total);
    mine.run();
    EXPECT_EQ(result, asio::error::operation_aborted);
    EXPECT_TRUE(eventually([&] { return nobody_waits(); }));
}

TEST_F(Async, AGrantThatComesAfterCancellationIsGivenBack) {
    for (int i = 0; i < 50; ++i) {
        asio::io_context mine;
        asio::cancellation_signal cancel;
        stock.async_acquire(
            asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(mine, [](error_code, lease) {})));
        if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(20 * i));
        cancel.emit(asio::cancellation_type::terminal);
        mine.run();
    }
    EXPECT_TRUE(eventually([&] { return free(); }));
    EXPECT_TRUE(stock.try_acquire());
}

TEST_F(Async, AStopTokenEndsTheWait) {
    const lease other = stock.acquire();
    std::stop_source stop;
    std::promise<error_code> result;
    stock.async_acquire({.stop = stop.get_token()}, [&](error_code code, const lease&) { result.set_value(code); });
    stop.request_stop();
    EXPECT_EQ(result.get_future().get(), asio::error::operation_aborted);
}

TEST_F(Async, AStopRequestedBeforeTheStartIsHeard) {
    std::stop_source stop;
    stop.request_stop();
    std::promise<error_code> result;
    stock.async_acquire({.stop = stop.get_token()}, [&](error_code code, const lease&) { result.set_value(code); });
    EXPECT_EQ(result.get_future().get(), asio::error::operation_aborted);
    EXPECT_TRUE(free());
}

TEST_F(Async, AnEmptyLeaseSaysSo) {
    lease nothing;
    std::promise<error_code> released;
    nothing.async_release([&](error_code code) { released.set_value(code); });
    EXPECT_EQ(released.get_future().get(), errc::not_held);
    std::promise<error_code> renewed;
    nothing.async_renew([&](error_code code) { renewed.set_value(code); });
    EXPECT_EQ(renewed.get_future().get(), errc::not_held);
}

TEST_F(Async, AHandlerThatBlocksDoesNotStopOthers) {
    std::promise<void> go_on;
    std::promise<void> blocked;
    stock.async_acquire([&, held_up = go_on.get_future().share()](error_code, const lease&) {
        blocked.set_value();
        held_up.wait();
    });
    blocked.get_future().wait();
    mutex other{subject, "other"};
    EXPECT_TRUE(other.try_lock());
    other.unlock();
    go_on.set_value();
}

// With many operations in flight, the thread that drives the loop sends the requests.
TEST_F(Async, InACrowdEveryOperationEndsAlthoughAHandlerBlocks) {
    constexpr int callers = 40;
    constexpr int turns = 25;
    std::promise<void> go_on;
    const auto held_up = go_on.get_future().share();
    std::promise<void> all_done;
    std::atomic<int> to_go = callers * turns;
    std::atomic<int> failures = 0;
    asio::io_context elsewhere;  // its handlers need not wait for the one that blocks
    auto work = asio::make_work_guard(elsewhere);
    std::thread runner([&] { elsewhere.run(); });

    const auto caller = [&](int number) -> asio::awaitable<void> {
        mutex own{subject, "own:" + std::to_string(number)};
        for (int i = 0; i < turns; ++i) {
            lease held = co_await own.async_acquire(asio::use_awaitable);
            if (!held) ++failures;
            co_await held.async_release(asio::use_awaitable);
            if (--to_go == 0) all_done.set_value();
        }
    };
    for (int i = 0; i < callers; ++i) asio::co_spawn(elsewhere, caller(i), asio::detached);
    stock.async_acquire([held_up](error_code, const lease&) { held_up.wait(); });
    EXPECT_EQ(all_done.get_future().wait_for(60s), std::future_status::ready);
    EXPECT_EQ(failures, 0);
    go_on.set_value();
    work.reset();  // not stop(): whoever posts the last handler may still be about to leave the context
    runner.join();
}

// What waits to be called keeps the client that calls it.
TEST_F(Async, AHandlerIsCalledAlthoughNothingIsLeftOfItsClient) {
    std::promise<void> blocking;
    std::promise<void> unblock;
    std::promise<error_code> released;
    {
        client theirs{server.url()};
        mutex lock{theirs, "stock"};
        lease held = lock.acquire();
        mutex other{theirs, "other"};
        other.async_try_acquire([&](error_code, const lease&) {
            blocking.set_value();
            unblock.get_future().wait();
        });
        blocking.get_future().wait();
        held.async_release([&](error_code code) { released.set_value(code); });
    }
    ASSERT_TRUE(eventually([&] { return free(); }));
    std::this_thread::sleep_for(50ms);  // time to forget it, where it is not kept
    unblock.set_value();
    auto told = released.get_future();
    ASSERT_EQ(told.wait_for(60s), std::future_status::ready);
    EXPECT_FALSE(told.get());
}

TEST_F(Async, AHandlerMayBeAlignedMoreStrictlyThanMost) {
    struct alignas(128) strict {
        std::promise<std::uintptr_t>* where;
        void operator()(error_code, const lease&) const { where->set_value(reinterpret_cast<std::uintptr_t>(this)); }
    };
    std::promise<std::uintptr_t> where;
    stock.async_acquire(strict{&where});
    EXPECT_EQ(where.get_future().get() % alignof(strict), 0U);
}

TEST_F(Async, AHandlerDroppedByItsExecutorGivesTheLockBack) {
    {
        asio::io_context abandoned;
        stock.async_acquire(asio::bind_executor(abandoned, [](error_code, const lease&) { FAIL(); }));
        EXPECT_TRUE(eventually([&] { return !free(); }));
        subject.ping();  // behind the grant's answer: by now the handler was posted
    }
    EXPECT_TRUE(eventually([&] { return free(); }));
}

}  // namespace
}  // namespace holdfast::testing::async_test
