// User callbacks that block, or call the library at a bad moment. None of them causes a deadlock or a second holder.
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

// The handler has no executor of its own, so it runs on the client's callback thread. Meanwhile other locks stay
// usable, and the hold is renewed.
TEST_F(Callbacks, ThatBlockDelayNeitherThreadsNorRenewals) {
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

// A waiter queued behind a lease that only a handler releases is served when it does.
TEST_F(Callbacks, MayReleaseALockThatOthersWaitFor) {
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

// The user's event loop does not run for a while: the handler waits there, and the lock is held and renewed.
TEST_F(Callbacks, ThatWaitForTheUsersLoopKeepTheLock) {
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
