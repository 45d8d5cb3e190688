// The read-write lock's asynchronous operations on a real server: futures, coroutines, and cancellation.
#include <holdfast/async.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>
#include <vector>

#include "integration/shared_mutex/shared_mutex_fixture.hpp"

namespace holdfast::testing::shared_mutex_async_test {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class SharedMutexAsync : public shared_mutex_fixture {
protected:
    /// What a handler of (error_code, lease) was told; the lease goes at once.
    class told {
    public:
        auto handler() {
            return [this](error_code code, lease held) {
                EXPECT_EQ(static_cast<bool>(held), !code);
                promise_.set_value(code);
            };
        }
        error_code get() { return result_of(future_); }
        bool is_told() const { return is_ready(future_); }

    private:
        std::promise<error_code> promise_;
        std::future<error_code> future_ = promise_.get_future();
    };
};

TEST_F(SharedMutexAsync, FuturesGetLeasesThatReadAndWriteAndReadAgain) {
    lease reading = lock.async_acquire_shared(asio::use_future).get();
    EXPECT_EQ(reading.mode(), mode::shared);
    EXPECT_EQ(field("mode"), "read");
    lease writing = reading.async_upgrade(asio::use_future).get();
    EXPECT_EQ(writing.mode(), mode::exclusive);
    EXPECT_EQ(field("mode"), "write");
    auto downgrading = writing.async_downgrade(asio::use_future);
    EXPECT_FALSE(writing) << "at once";
    lease again = downgrading.get();
    EXPECT_EQ(again.mode(), mode::shared);
    EXPECT_EQ(field("mode"), "read");
    again.async_release(asio::use_future).get();
    reading.async_release(asio::use_future).get();
    EXPECT_TRUE(free());
    lease alone = lock.async_acquire(asio::use_future).get();
    EXPECT_EQ(alone.mode(), mode::exclusive);
    EXPECT_EQ(field("mode"), "write");
}

TEST_F(SharedMutexAsync, EveryFormOfAcquireSharedSaysWhyNot) {
    lease writing = theirs.acquire();
    told tried;
    lock.async_try_acquire_shared(tried.handler());
    EXPECT_EQ(tried.get(), errc::write_held);
    told tried_to_write;
    lock.async_try_acquire({.lease = 5s}, tried_to_write.handler());
    EXPECT_EQ(tried_to_write.get(), errc::write_held);
    told waited;
    lock.async_try_acquire_shared_for(30ms, waited.handler());
    EXPECT_EQ(waited.get(), errc::timed_out);
    writing.release();
    told fine;
    lock.async_try_acquire_shared({.lease = 5s}, fine.handler());
    EXPECT_EQ(fine.get(), error_code());
    told fine_too;
    lock.async_try_acquire_shared_for(10s, {.lease = 5s}, fine_too.handler());
    EXPECT_EQ(fine_too.get(), error_code());
}

TEST_F(SharedMutexAsync, EveryFormOfUpgradeSaysWhyNot) {
    lease reading = lock.acquire_shared();
    lease in_the_way = theirs.acquire_shared();
    told tried;
    reading.async_try_upgrade(tried.handler());
    EXPECT_EQ(tried.get(), errc::read_held);
    told waited;
    reading.async_try_upgrade_for(30ms, waited.handler());
    EXPECT_EQ(waited.get(), errc::timed_out);
    told by_former_name;
    reading.async_upgrade_for(30ms, by_former_name.handler());
    EXPECT_EQ(by_former_name.get(), errc::timed_out);
    ASSERT_TRUE(queue_has(0));
    told first;
    reading.async_upgrade(first.handler());
    ASSERT_TRUE(queue_has(1));
    told second;
    reading.async_upgrade(second.handler());
    EXPECT_EQ(second.get(), errc::too_many);
    told rival;
    in_the_way.async_upgrade(rival.handler());
    EXPECT_EQ(rival.get(), errc::would_deadlock);
    EXPECT_FALSE(first.is_told());
    in_the_way.release();
    EXPECT_EQ(first.get(), error_code());
    lease writing = reading.async_upgrade(asio::use_future).get();
    told wrong;
    writing.async_upgrade(wrong.handler());
    EXPECT_EQ(wrong.get(), errc::held_other_mode);
    told empty;
    lease().async_upgrade(empty.handler());
    EXPECT_EQ(empty.get(), errc::not_held);
}

TEST_F(SharedMutexAsync, ADowngradeThatCannotBeSaysSoAndLeavesTheLease) {
    lease reading = lock.acquire_shared();
    told of_a_reader;
    reading.async_downgrade(of_a_reader.handler());
    EXPECT_EQ(of_a_reader.get(), errc::held_other_mode);
    EXPECT_TRUE(reading);
    mutex stock{subject, "stock"};
    lease held = stock.acquire();
    told of_a_mutex;
    held.async_downgrade(of_a_mutex.handler());
    EXPECT_EQ(of_a_mutex.get(), errc::held_other_mode);
    EXPECT_TRUE(held);
    told empty;
    lease().async_downgrade(empty.handler());
    EXPECT_EQ(empty.get(), errc::not_held);
}

TEST_F(SharedMutexAsync, AnUpgradeEndsWhenItsLeaseIsReleased) {
    lease reading = lock.acquire_shared();
    const lease in_the_way = theirs.acquire_shared();
    told upgrade;
    reading.async_upgrade(upgrade.handler());
    ASSERT_TRUE(queue_has(1));
    EXPECT_FALSE(reading.release());
    EXPECT_EQ(upgrade.get(), errc::not_held);
    EXPECT_TRUE(queue_has(0));
    EXPECT_EQ(readers(), 1);
    EXPECT_TRUE(theirs.try_acquire_shared());
}

// R26
TEST_F(SharedMutexAsync, ACancelledUpgradeGoesOnReadingAndLetsNewReadersIn) {
    lease reading = lock.acquire_shared();
    lease in_the_way = theirs.acquire_shared();
    const auto token = reading.token();
    asio::io_context mine;
    asio::cancellation_signal cancel;
    error_code result;
    reading.async_upgrade(
        asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(mine, [&](error_code code, const lease& held) {
                                         EXPECT_FALSE(held);
                                         result = code;
                                     })));
    ASSERT_TRUE(queue_has(1));
    EXPECT_FALSE(theirs.try_acquire_shared());
    cancel.emit(asio::cancellation_type::total);
    mine.run();
    EXPECT_EQ(result, asio::error::operation_aborted);
    EXPECT_TRUE(queue_has(0));
    EXPECT_TRUE(theirs.try_acquire_shared());
    EXPECT_FALSE(reading.renew());
    EXPECT_EQ(reading.token(), token);
    in_the_way.release();
    EXPECT_TRUE(reading.try_upgrade());
}

TEST_F(SharedMutexAsync, AnUpgradeGrantedAfterCancellationIsGivenBack) {
    lease reading = lock.acquire_shared();
    for (int i = 0; i < 50; ++i) {
        asio::io_context mine;
        asio::cancellation_signal cancel;
        reading.async_upgrade(
            asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(mine, [](error_code, lease) {})));
        if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(20 * i));
        cancel.emit(asio::cancellation_type::terminal);
        mine.run();
    }
    EXPECT_TRUE(eventually([&] { return field("mode") == "read"; }));
    EXPECT_FALSE(reading.renew());
    EXPECT_TRUE(theirs.try_acquire_shared());
    EXPECT_TRUE(eventually([&] { return static_cast<bool>(reading.try_upgrade()); }));
}

TEST_F(SharedMutexAsync, ACancelledWaitToReadLeavesTheQueue) {
    const lease writing = theirs.acquire();
    asio::io_context mine;
    asio::cancellation_signal cancel;
    error_code result;
    lock.async_acquire_shared(asio::bind_cancellation_slot(
        cancel.slot(), asio::bind_executor(mine, [&](error_code code, const lease&) { result = code; })));
    ASSERT_TRUE(queue_has(1));
    cancel.emit(asio::cancellation_type::partial);
    mine.run();
    EXPECT_EQ(result, asio::error::operation_aborted);
    EXPECT_TRUE(queue_has(0));
    std::stop_source stop;
    told stopped;
    lock.async_acquire_shared({.stop = stop.get_token()}, stopped.handler());
    ASSERT_TRUE(queue_has(1));
    stop.request_stop();
    EXPECT_EQ(stopped.get(), asio::error::operation_aborted);
}

TEST_F(SharedMutexAsync, CoroutinesReadTogetherAndWriteAlone) {
    asio::io_context mine;
    int reading = 0;
    int writing = 0;
    int upgraded = 0;
    int most_readers = 0;
    const auto read = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < 20; ++i) {
            lease held = co_await lock.async_acquire_shared(asio::use_awaitable);
            EXPECT_EQ(writing, 0);
            most_readers = std::max(most_readers, ++reading);
            co_await asio::post(mine, asio::use_awaitable);
            --reading;
            co_await held.async_release(asio::use_awaitable);
        }
    };
    const auto read_and_write = [&]() -> asio::awaitable<void> {
        for (int i = 0; i < 20; ++i) {
            lease held = co_await lock.async_acquire_shared(asio::use_awaitable);
            lease wrote = co_await held.async_upgrade(asio::use_awaitable);
            EXPECT_EQ(++writing, 1);
            EXPECT_EQ(reading, 0);
            co_await asio::post(mine, asio::use_awaitable);
            --writing;
            ++upgraded;
            const lease again = co_await wrote.async_downgrade(asio::use_awaitable);
            EXPECT_EQ(writing, 0);
        }
    };
    std::vector<std::future<void>> all;
    for (int i = 0; i < 4; ++i) all.push_back(asio::co_spawn(mine, read(), asio::use_future));
    all.push_back(asio::co_spawn(mine, read_and_write(), asio::use_future));
    mine.run();
    for (auto& each : all) each.get();
    EXPECT_EQ(upgraded, 20);
    EXPECT_GT(most_readers, 1);
    catch_up();
    EXPECT_TRUE(free());
}

TEST_F(SharedMutexAsync, AHandlerDroppedByItsExecutorGivesTheUpgradeBack) {
    lease reading = lock.acquire_shared();
    {
        asio::io_context abandoned;
        reading.async_upgrade(asio::bind_executor(abandoned, [](error_code, const lease&) { FAIL(); }));
        EXPECT_TRUE(eventually([&] { return field("mode") == "write"; }));
        subject.ping();  // behind the upgrade's answer: by now the handler was posted
    }
    EXPECT_TRUE(eventually([&] { return field("mode") == "read"; }));
    EXPECT_FALSE(reading.release());
}

}  // namespace
}  // namespace holdfast::testing::shared_mutex_async_test
