// Asynchronous operations on what a forked child has from its parent: they end, and touch nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <future>
#include <memory>
#include <utility>

#include "support/redis_server.hpp"

namespace holdfast::testing::async_fork_test {
namespace {

#ifndef __SANITIZE_THREAD__  // which does not support threads started after a fork

using namespace std::chrono_literals;

// False also if no handler is run.
template <typename Start>
bool ends_as_forked(const Start& start) {
    const auto told = std::make_shared<std::promise<boost::system::error_code>>();
    auto result = told->get_future();
    start([told](boost::system::error_code why) { told->set_value(why); });
    return result.wait_for(30s) == std::future_status::ready && result.get() == make_error_code(errc::forked);
}

// The number of the first thing that was wrong, or 0.
int forked_child(lease& held) {
    if (!ends_as_forked([&](auto handler) { held.async_renew(std::move(handler)); })) return 1;
    if (!ends_as_forked([&](auto handler) { held.async_release(std::move(handler)); })) return 2;
    return 0;
}

TEST(AsyncFork, AnOperationOnTheParentsLeaseIsToldSoThoughTheCallbackThreadIsTheParents) {
    redis_server server;
    client subject{server.url()};
    mutex lock{subject, "stock"};
    lease held = lock.acquire();
    std::promise<void> renewed;
    held.async_renew([&](boost::system::error_code) { renewed.set_value(); });
    renewed.get_future().wait();  // the callback thread runs
    const pid_t child = ::fork();
    if (child == 0) ::_exit(forked_child(held));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(held.release());
}

#endif

}  // namespace
}  // namespace holdfast::testing::async_fork_test
