// A server that was restarted without its data is asked for nothing until every lease that it forgot is over: R61.
//
// A server tells its uptime in whole seconds, as a difference of two wall clock readings that are cut. It is off most
// just after a wall second began, if the server was started just before that.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <chrono>
#include <string>
#include <thread>

#include "base/boot_clock.hpp"
#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::restarted_server_test {
namespace {

using namespace std::chrono_literals;
using wall = std::chrono::system_clock;

constexpr milliseconds longest_lease = 2s;

std::chrono::nanoseconds since_second_began() {
    return wall::now().time_since_epoch() % 1s;
}

void wait_for_end_of_second(milliseconds before) {
    const auto left = (1s - before) - since_second_began();
    std::this_thread::sleep_for(left < 0ns ? left + 1s : left);
}

client_options mistrusting() {
    return {.max_lease = longest_lease, .after_restart = restarted_server::mistrusted};
}

TEST(RestartedServer, IsNotTrustedWhileAFormerHolderBelieves) {
    redis_server server;
    tcp_proxy link{server.port()};
    client former{link.url(), mistrusting()};
    mutex former_lock{former, "stock", {.lease = longest_lease}};
    // Until the server was started within the last part of a second, which a stall of the machine may prevent.
    for (bool was_started_late_in_a_second = false; !was_started_late_in_a_second;) {
        link.accept();
        lease held = former_lock.acquire();
        wait_for_end_of_second(150ms);
        ASSERT_FALSE(held.renew());
        link.refuse();
        link.cut();
        const instant believed_until = boot_now() + held.validity();
        server.kill();
        wait_for_end_of_second(100ms);
        const auto second = std::chrono::floor<std::chrono::seconds>(wall::now());
        server.restart(redis_server::data::lose);
        was_started_late_in_a_second = std::chrono::floor<std::chrono::seconds>(wall::now()) == second;
        ASSERT_TRUE(eventually([&] { return server.info("server", "uptime_in_seconds") != "0"; }));

        client newcomer{server.url(), mistrusting()};
        mutex lock{newcomer, "stock", {.lease = longest_lease}};
        const lease mine = lock.acquire();
        EXPECT_GE(std::chrono::duration<double>(boot_now() - believed_until).count(), 0.0);
    }
}

}  // namespace
}  // namespace holdfast::testing::restarted_server_test
