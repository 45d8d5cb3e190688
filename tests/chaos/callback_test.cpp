// Users' code that takes its time, or calls back at a bad moment, in the midst of the library: none of it
// hangs, none of it lets two in.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <future>
#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>
#include <thread>

#include "chaos/chaos_fixture.hpp"
#include "support/renewed.hpp"

namespace holdfast::testing::callback_test {
namespace {

using namespace std::chrono_literals;

class Callbacks : public chaos_fixture {
protected:
    client redis{server.url()};
};

// The handler has no executor of its own, so it runs on the client's callback thread. A thread must get on
// with other locks meanwhile, and a hold must go on being renewed.
TEST_F(Callbacks, ThatBlockHoldUpNeitherThreadsNorRenewals) {
    mutex slow{redis, "slow"};
    mutex other{redis, "other", {.lease = 5s}};
    lease kept = other.acquire();
    std::promise<void> entered;
    std::promise<void> go_on;
    std::promise<void> left;
    slow.async_acquire([&](boost::system::error_code failed, lease held) {
        EXPECT_FALSE(failed) << failed.message();
        entered.set_value();
        go_on.get_future().wait();
        held.release();
        left.set_value();
    });
    ASSERT_EQ(entered.get_future().wait_for(an_age), std::future_status::ready);

    mutex third{redis, "third"};
    for (int cycle = 0; cycle < 10; ++cycle) const std::scoped_lock guard{third};
    EXPECT_FALSE(slow.try_acquire()) << "two are in";
    EXPECT_TRUE(is_renewed(server, "hf:{other}", 2));
    EXPECT_FALSE(slow.try_acquire_for(100ms)) << "two are in";
    EXPECT_FALSE(kept.lost().stop_requested()) << "not renewed";
    EXPECT_GT(kept.validity(), 0ms);
    EXPECT_FALSE(kept.release());

    go_on.set_value();
    ASSERT_EQ(left.get_future().wait_for(an_age), std::future_status::ready);
    EXPECT_TRUE(slow.try_acquire_for(10s));
}

// Who waits in line behind a lease that only a handler can give back is served when it does.
TEST_F(Callbacks, MayReleaseWhatOthersWaitFor) {
    mutex lock{redis, "handed"};
    std::atomic<int> inside{0};
    std::atomic<int> served{0};
    std::promise<void> all;
    const auto section = [&](boost::system::error_code failed, lease held) {
        EXPECT_FALSE(failed) << failed.message();
        EXPECT_EQ(++inside, 1);
        std::this_thread::sleep_for(5ms);
        --inside;
        held.release();
        if (++served == 20) all.set_value();
    };
    for (int asked = 0; asked < 20; ++asked) lock.async_acquire(section);
    ASSERT_EQ(all.get_future().wait_for(an_age), std::future_status::ready);
}

// A loop of the user's that nobody runs for a while: its handler waits there, the lock is held and renewed.
TEST_F(Callbacks, ThatAreNotFetchedKeepTheLock) {
    boost::asio::io_context loop;
    mutex lock{redis, "parked", {.lease = 5s}};
    lease got;
    lock.async_acquire(
        boost::asio::bind_executor(loop.get_executor(), [&](boost::system::error_code failed, lease held) {
            EXPECT_FALSE(failed) << failed.message();
            got = std::move(held);
        }));
    ASSERT_TRUE(eventually([&] { return server.call({"EXISTS", "hf:{parked}"}).integer == 1; }));
    client rival_client{server.url()};
    mutex rival{rival_client, "parked"};
    EXPECT_TRUE(is_renewed(server, "hf:{parked}", 2));
    EXPECT_FALSE(rival.try_acquire()) << "two are in";
    loop.run();
    ASSERT_TRUE(got);
    EXPECT_GT(got.validity(), 0ms);
    EXPECT_FALSE(got.release());
}

}  // namespace
}  // namespace holdfast::testing::callback_test
