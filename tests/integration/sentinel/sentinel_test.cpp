// A primary that sentinels watch over is found by its name; whoever cannot be used is left alone, and why is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/sentinel_set.hpp"
#include "support/sockets.hpp"

namespace holdfast::testing::sentinel_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::string watched_by(const std::vector<int>& ports, const std::string& rest) {
    std::string hosts;
    for (const int port : ports) hosts += (hosts.empty() ? "" : ",") + at_port(port);
    return "redis+sentinel://" + hosts + rest;
}

TEST(Sentinel, AllKindsOfLocksAreTakenOnThePrimaryThatTheyName) {
    sentinel_set set;
    client subject{set.url()};
    mutex lock{subject, "stock"};
    lease held = lock.acquire();
    EXPECT_EQ(set.servers[0].call({"GET", "hf:{stock}"}).text, held.id());
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
    shared_mutex catalog{subject, "catalog"};
    lease reading = catalog.acquire_shared();
    reading.upgrade().downgrade();
    striped_shared_mutex striped{subject, "striped", 4};
    EXPECT_TRUE(striped.try_acquire());
    EXPECT_FALSE(lock.async_acquire(boost::asio::use_future).get().release());
    EXPECT_EQ(subject.server(), set.url() + "/0");

    // Two of three that do not answer are no reason to wait: one is not there, one hangs.
    set.sentinels[0].kill();
    set.sentinels[1].pause();
    client other{set.url()};
    mutex theirs{other, "stock"};
    EXPECT_TRUE(theirs.try_acquire());
    set.sentinels[1].resume();
}

TEST(Sentinel, ThatNobodyKnowsThePrimaryIsToldClearly) {
    redis_server server;
    redis_server sentinel{
        {.config = {"sentinel monitor mine 127.0.0.1 " + std::to_string(server.port()) + " 1"}, .sentinel = true}};
    const reserved_port nobody = reserve_port();
    EXPECT_NO_THROW(client{watched_by({nobody.port, sentinel.port()}, "/mine")}.ping());
    // No sentinel there.
    expect_client_refused(errc::connection_refused, watched_by({nobody.port}, "/mine"), at_port(nobody.port));
    // Another name.
    expect_client_refused(errc::no_primary, watched_by({nobody.port, sentinel.port()}, "/other"),
                          at_port(sentinel.port()) + "/0 knows no primary \"other\"");
    // A plain server.
    expect_client_refused(errc::no_primary, watched_by({server.port()}, "/mine"), "is no sentinel");
    // A primary that is not there.
    server.kill();
    expect_client_refused(errc::connection_refused, watched_by({sentinel.port()}, "/mine"),
                          "at " + at_port(server.port()));
}

TEST(Sentinel, APasswordOfTheirOwnIsTheirsAlone) {
    ASSERT_EQ(setenv("HOLDFAST_SENTINEL_TEST", "watchword", 1), 0);
    sentinel_set set{{.password = password, .sentinel_password = "watchword"}};
    const std::string with_both = set.url() + "?sentinel_password_env=HOLDFAST_SENTINEL_TEST";
    client subject{with_both};
    mutex lock{subject, "stock"};
    EXPECT_TRUE(lock.try_acquire());
    // The servers' password is not tried on the sentinels: they would say WRONGPASS then.
    expect_client_refused(errc::auth_required, set.url(), at_port(set.sentinels[0].port()));
    ASSERT_EQ(setenv("HOLDFAST_SENTINEL_TEST", password.c_str(), 1), 0);
    expect_client_refused(errc::wrong_password, with_both, at_port(set.sentinels[0].port()));
    ASSERT_EQ(setenv("HOLDFAST_SENTINEL_TEST", "watchword", 1), 0);
    std::string without = with_both;
    without.erase(without.find(":" + password + "@"), password.size() + 2);
    expect_client_refused(errc::auth_required, without, at_port(set.servers[0].port()));
    unsetenv("HOLDFAST_SENTINEL_TEST");
}

bool has_link(redis_server& server, const std::string& name) {
    return server.call({"CLIENT", "LIST"}).text.find("name=" + name + " ") != std::string::npos;
}

TEST(Sentinel, APrimaryThatWasTurnedIntoAReplicaIsLeftAtOnce) {
    sentinel_set set;
    client subject{set.url() + "?client_name=subject"};
    mutex lock{subject, "stock"};
    ASSERT_FALSE(lock.try_acquire().release());  // nothing is in flight any more
    redis_server& primary = set.servers[0];
    ASSERT_TRUE(has_link(primary, "subject"));
    ASSERT_EQ(primary.call({"REPLICAOF", "127.0.0.1", std::to_string(set.servers[1].port())}).text, "OK");
    expect_refusal(errc::read_only, set.url(), [&] { lock.try_acquire(); });
    EXPECT_TRUE(eventually([&] { return !has_link(primary, "subject"); }));
    // Its sentinels still name it, and a replica it is: nobody else is written to.
    std::future<lease> waiting = std::async(std::launch::async, [&] { return lock.try_acquire_for(an_age); });
    EXPECT_EQ(waiting.wait_for(100ms), std::future_status::timeout);
    ASSERT_EQ(primary.call({"REPLICAOF", "NO", "ONE"}).text, "OK");
    EXPECT_TRUE(waiting.get()) << "and taken again when it is a primary again";
}

// What took over may lack votes that others still count on. A client that was there knows it by its run_id, one that
// comes later by what the sentinels say.
TEST(Sentinel, AQuorumDoesNotAskAPrimaryThatTookOverUntilAllItMayLackIsOver) {
    constexpr milliseconds longest_lease = 10s;  // and so also longer than a busy machine needs to fail over
    sentinel_set set;
    std::vector<redis_server> plain(2);
    const std::vector<std::string> urls{set.url() + "?client_name=subject", plain[0].url(), plain[1].url()};
    client subject{urls, {.max_lease = longest_lease}};
    mutex lock{subject, "stock", {.lease = longest_lease}};
    lease held = lock.acquire();  // waits until the servers are old enough
    ASSERT_TRUE(eventually(
        [&] {
            return set.servers[0].call({"GET", "hf:{stock}"}).text == held.id();
        },
        an_age))
        << "the primary votes, too";

    ASSERT_TRUE(set.fail_over());
    const auto promoted = std::chrono::steady_clock::now();  // or a little later
    ASSERT_TRUE(set.has_moved_from(set.servers[0]));
    // A client that has not heard of the failover yet still gets the vote of the former primary, which takes writes.
    ASSERT_TRUE(eventually([&] { return has_link(set.primary(), "subject"); }, an_age));
    EXPECT_FALSE(held.lost().stop_requested()) << "two of three go on";
    plain[1].kill();
    client newcomer{urls, {.max_lease = longest_lease}};
    const auto acquired_after = [&](const client& who, const std::string& name) {
        mutex wanted{who, name, {.lease = longest_lease}};
        EXPECT_TRUE(wanted.try_acquire_for(2 * an_age)) << name;
        return std::chrono::steady_clock::now() - promoted;
    };
    auto here = std::async(std::launch::async, acquired_after, std::cref(subject), "here");
    auto there = std::async(std::launch::async, acquired_after, std::cref(newcomer), "there");
    EXPECT_GE(here.get(), longest_lease);
    EXPECT_GE(there.get(), longest_lease);
}

/// Plays a sentinel; nothing is known to it while `epoch` is 0.
session sentinel_that_says(const redis_server& primary, const std::atomic<int>& epoch, milliseconds since) {
    const auto bulk = [](const std::string& text) {
        return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    };
    const std::string place = bulk("127.0.0.1") + bulk(std::to_string(primary.port()));
    const auto answer = [=, &epoch, port = primary.port()](fake_connection& connection, const command& asked) {
        if (asked.at(0) == "SUBSCRIBE") {
            connection.write(">3\r\n" + bulk("subscribe") + bulk(asked.at(1)) + ":1\r\n");
        } else if (asked.at(0) != "SENTINEL") {
            connection.write(asked.at(0) == "PING" ? "+PONG\r\n" : "$0\r\n\r\n");
        } else if (epoch == 0) {
            connection.write(asked.at(1) == "MASTER" ? "-ERR No such master with that name\r\n" : "_\r\n");
        } else if (asked.at(1) == "MASTER") {
            connection.write("%4\r\n" + bulk("ip") + bulk("127.0.0.1") + bulk("port") + bulk(std::to_string(port)) +
                             bulk("role-reported-time") + bulk(std::to_string(since.count())) + bulk("config-epoch") +
                             bulk(std::to_string(epoch)));
        } else {
            connection.write("*2\r\n" + place);
        }
    };
    return behaviours::after_hello(answer, {.mode = "sentinel"});
}

TEST(Sentinel, APrimaryThatCameBackIsMistrustedThoughTheFirstSentinelHasNotHeardOfIt) {
    constexpr milliseconds longest_lease = 5s;
    redis_server server;
    const std::atomic<int> long_ago = 1;
    std::atomic<int> just_now = 0;
    misbehaving_server stale{sentinel_that_says(server, long_ago, 1h)};
    misbehaving_server informed{sentinel_that_says(server, just_now, 0ms)};
    client subject{watched_by({stale.port(), informed.port()}, "/mine?health_interval=200ms"),
                   {.max_lease = longest_lease, .after_restart = restarted_server::mistrusted}};
    mutex lock{subject, "stock", {.lease = longest_lease}};
    ASSERT_TRUE(lock.try_acquire_for(an_age));  // waits until the server is old enough
    ASSERT_TRUE(lock.try_acquire());
    just_now = 3;
    EXPECT_TRUE(eventually([&] {
        try {
            const lease again = lock.try_acquire();
            return false;
        } catch (const error& refused) {
            return refused.condition() == errc::recovering;
        }
    }));
    EXPECT_TRUE(lock.try_acquire_for(an_age)) << "and trusted again in the end";
}

}  // namespace
}  // namespace holdfast::testing::sentinel_test
