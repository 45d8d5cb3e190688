// Watching and campaigning with completion tokens, on a real server. R55, R56
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::watch_stream_test {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using boost::system::error_code;

class WatchStream : public ::testing::Test {
protected:
    redis_server server;
    client subject{server.url()};
    client other{server.url()};
    mutex stock{subject, "stock"};
};

TEST_F(WatchStream, TellsACoroutineThePresentHolderAndEachChange) {
    asio::io_context mine;
    const auto work = [&]() -> asio::awaitable<void> {
        watch_stream changes{other, "stock"};
        const sight nobody = co_await changes.async_next(asio::use_awaitable);
        EXPECT_TRUE(nobody.is_free());
        for (int i = 0; i < 10; ++i) {
            lease held = co_await stock.async_acquire(asio::use_awaitable);
            const sight seen = co_await changes.async_next(asio::use_awaitable);
            EXPECT_EQ(seen.holder, held.id());
            EXPECT_EQ(seen.token, held.token());
            co_await held.async_release(asio::use_awaitable);
            const sight gone = co_await changes.async_next(asio::use_awaitable);
            EXPECT_TRUE(gone.is_free());
        }
    };
    asio::co_spawn(mine, work(), [](const std::exception_ptr& why) { EXPECT_FALSE(why); });
    mine.run();
}

TEST_F(WatchStream, TellsALateReaderTheLastStateOnly) {
    watch_stream changes{other, "stock"};
    EXPECT_TRUE(changes.async_next(asio::use_future).get().is_free());
    for (int i = 0; i < 20; ++i) stock.acquire().release();
    const lease held = stock.acquire({.note = "the last"});
    // One that sees everything says when it has come.
    std::promise<void> came;
    const watching eye = watch(other, "stock", [&](const sight& seen) {
        if (seen.holder == held.id()) came.set_value();
    });
    came.get_future().get();
    sight seen;
    int told = 0;
    while (seen.holder != held.id() && told < 3) {
        seen = changes.async_next(asio::use_future).get();
        ++told;
    }
    EXPECT_EQ(seen.note, "the last") << "after " << told;
}

TEST_F(WatchStream, ACancelledCallLeavesTheChangeToTheNext) {
    watch_stream changes{other, "stock"};
    ASSERT_TRUE(changes.async_next(asio::use_future).get().is_free());
    asio::io_context mine;
    asio::cancellation_signal cancel;
    error_code result;
    changes.async_next(asio::bind_cancellation_slot(
        cancel.slot(), asio::bind_executor(mine, [&](error_code code, const sight&) { result = code; })));
    cancel.emit(asio::cancellation_type::total);
    mine.run();
    EXPECT_EQ(result, asio::error::operation_aborted);
    const lease held = stock.acquire();
    EXPECT_EQ(changes.async_next(asio::use_future).get().holder, held.id());
}

TEST_F(WatchStream, ALateCancellationLeavesTheNextCallAlone) {
    watch_stream changes{other, "stock"};
    asio::io_context mine;
    asio::cancellation_signal cancel;
    changes.async_next(asio::bind_cancellation_slot(
        cancel.slot(), asio::bind_executor(mine, [](error_code code, const sight&) { EXPECT_FALSE(code); })));
    mine.run();
    auto next = changes.async_next(asio::use_future);
    cancel.emit(asio::cancellation_type::total);
    const lease held = stock.acquire();
    EXPECT_EQ(next.get().holder, held.id());
}

TEST_F(WatchStream, OneCallAtATime) {
    watch_stream changes{other, "stock"};
    ASSERT_TRUE(changes.async_next(asio::use_future).get().is_free());
    auto first = changes.async_next(asio::use_future);
    std::promise<error_code> second;
    changes.async_next([&](error_code code, const sight&) { second.set_value(code); });
    EXPECT_EQ(second.get_future().get(), asio::error::already_started);
    const lease held = stock.acquire();
    EXPECT_EQ(first.get().holder, held.id());
}

TEST_F(WatchStream, ThatEndsAbortsTheCallThatWaits) {
    std::promise<error_code> result;
    std::promise<error_code> afterwards;
    {
        watch_stream changes{other, "stock"};
        ASSERT_TRUE(changes.async_next(asio::use_future).get().is_free());
        changes.async_next([&](error_code code, const sight&) { result.set_value(code); });
        changes.stop();
        changes.async_next([&](error_code code, const sight&) { afterwards.set_value(code); });
    }
    EXPECT_EQ(result.get_future().get(), asio::error::operation_aborted);
    EXPECT_EQ(afterwards.get_future().get(), asio::error::operation_aborted);
    EXPECT_TRUE(eventually([&] { return server.call({"EXISTS", "hf:{stock}:waiters"}).integer == 0; }, an_age));
}

TEST_F(WatchStream, TellsTroubleOnceAndGoesOn) {
    shared_mutex catalog{subject, "stock"};
    std::optional<lease> held = catalog.acquire_shared();
    watch_stream changes{other, "stock"};
    std::promise<error_code> trouble;
    changes.async_next([&](error_code code, const sight&) { trouble.set_value(code); });
    EXPECT_EQ(trouble.get_future().get(), errc::wrong_type);
    auto next = changes.async_next(asio::use_future);
    held.reset();
    EXPECT_TRUE(next.get().is_free());
}

class AsyncElection : public WatchStream {};

TEST_F(AsyncElection, CoroutinesCampaignAndObserve) {
    election mine{subject, "leader"};
    election theirs{other, "leader"};
    asio::io_context here;
    int led = 0;
    bool leads = false;
    const auto candidate = [&](election& vote, std::string value) -> asio::awaitable<void> {
        for (int i = 0; i < 10; ++i) {
            lease leadership = co_await vote.async_campaign(value, asio::use_awaitable);
            EXPECT_FALSE(std::exchange(leads, true));
            EXPECT_EQ(vote.leader()->value, value);
            EXPECT_EQ(vote.leader()->token, leadership.token());
            leads = false;
            ++led;
            co_await leadership.async_release(asio::use_awaitable);
        }
    };
    std::uint64_t last = 0;
    const auto observer = [&]() -> asio::awaitable<void> {
        watch_stream changes = theirs.observe_by_stream();
        while (led < 20) {
            const sight seen = co_await changes.async_next(asio::use_awaitable);
            const std::optional<leader> who = leader_in(seen);
            if (!who) continue;
            EXPECT_TRUE(who->value == "node-1" || who->value == "node-2") << who->value;
            EXPECT_GT(who->token, last);
            last = who->token;
        }
    };
    const auto rethrow = [](const std::exception_ptr& why) { EXPECT_FALSE(why); };
    asio::co_spawn(here, candidate(mine, "node-1"), rethrow);
    asio::co_spawn(here, candidate(theirs, "node-2"), rethrow);
    asio::co_spawn(here, observer(), rethrow);
    here.run();
    EXPECT_EQ(led, 20);
    EXPECT_GT(last, 0U);
}

TEST_F(AsyncElection, AValueIsCopiedBeforeTheCallReturns) {
    election vote{subject, "leader"};
    std::optional<std::string> value = std::string(500, 'a');
    auto later = vote.async_campaign(*value, asio::deferred);
    value->assign(500, 'b');
    value.reset();
    const lease leadership = std::move(later)(asio::use_future).get();
    EXPECT_EQ(vote.leader()->value, std::string(500, 'a'));
}

TEST_F(AsyncElection, EndsByItsTimeAndByCancellation) {
    election mine{subject, "leader"};
    election theirs{other, "leader"};
    const lease leadership = mine.campaign("node-1");
    std::promise<error_code> timed;
    theirs.async_try_campaign_for(20ms, "node-2", [&](error_code code, const lease&) { timed.set_value(code); });
    EXPECT_EQ(timed.get_future().get(), errc::timed_out);
    asio::io_context here;
    asio::cancellation_signal cancel;
    error_code result;
    theirs.async_campaign(
        "node-2", asio::bind_cancellation_slot(
                      cancel.slot(), asio::bind_executor(here, [&](error_code code, const lease&) { result = code; })));
    const auto waits = [&] { return server.call({"EXISTS", "hf:{leader}:queue"}).integer == 1; };
    ASSERT_TRUE(eventually(waits, an_age));
    cancel.emit(asio::cancellation_type::total);
    here.run();
    EXPECT_EQ(result, asio::error::operation_aborted);
    EXPECT_TRUE(eventually([&] { return !waits(); }, an_age));
}

}  // namespace
}  // namespace holdfast::testing::watch_stream_test
