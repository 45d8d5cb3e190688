// A server that was never reached: who waits for it, for how long, and what is told then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/in_background.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::first_connect_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr auto brief = 300ms;
/// Retries often, so that a server that comes is soon found.
const std::string often = "backoff_max=50ms";

/// Nothing listens at the proxy's port until accept().
class FirstConnect : public ::testing::Test {
protected:
    FirstConnect() { gate.refuse(); }

    std::string url() const { return gate.url() + "?" + often; }
    /// The first attempt has failed: from here on it is retries.
    static void fail_once(client& subject) { EXPECT_THROW(subject.ping(), error); }

    redis_server server;
    tcp_proxy gate{server.port()};
};

/// It must be refused so, and not before so much time has passed.
template <typename Operation>
void expect_refusal_after(milliseconds wait, errc expected, const std::string& text, Operation operation) {
    const auto before = std::chrono::steady_clock::now();
    expect_refusal(expected, text, operation);
    EXPECT_GE(std::chrono::steady_clock::now() - before, wait);
}

TEST_F(FirstConnect, ABoundedWaitWaitsForTheServer) {
    client subject{url()};
    fail_once(subject);
    mutex lock{subject, "stock"};
    auto waiting = in_background([&] { return lock.try_acquire_for(an_age); });
    EXPECT_EQ(waiting.wait_for(brief), std::future_status::timeout);
    gate.accept();
    EXPECT_TRUE(waiting.get());
}

TEST_F(FirstConnect, ABoundedWaitTellsTheReasonAtItsDeadline) {
    client subject{url()};
    mutex lock{subject, "stock"};
    shared_mutex catalog{subject, "catalog"};
    const std::string there = at_port(gate.port());
    refusal why;
    expect_refusal_after(brief, errc::connection_refused, there,
                         [&] { lock.try_acquire_for(brief, {.why_not = &why}); });
    EXPECT_EQ(to_text(why.code), to_text(errc::connection_refused));
    expect_refusal_after(brief, errc::connection_refused, there, [&] { lock.try_lock_for(brief); });
    expect_refusal_after(brief, errc::connection_refused, there, [&] { catalog.try_acquire_shared_for(brief); });
}

TEST_F(FirstConnect, AnUnboundedWaitWaitsForTheServer) {
    client subject{url()};
    fail_once(subject);
    mutex lock{subject, "stock"};
    mutex other{subject, "other"};
    auto waiting = in_background([&] { return lock.acquire(); });
    auto promised = other.async_acquire({}, boost::asio::use_future);
    EXPECT_EQ(waiting.wait_for(brief), std::future_status::timeout);
    gate.accept();
    EXPECT_TRUE(waiting.get());
    EXPECT_TRUE(promised.get());
}

TEST_F(FirstConnect, AnUnboundedWaitTellsTheReasonAfterFirstConnect) {
    client subject{url(), {.first_connect = brief}};
    mutex lock{subject, "stock"};
    striped_shared_mutex striped{subject, "striped", 2};
    const std::string there = at_port(gate.port());
    expect_refusal_after(brief, errc::connection_refused, there, [&] { lock.acquire(); });
    expect_refusal_after(brief, errc::connection_refused, there, [&] { lock.lock(); });
    expect_refusal_after(brief, errc::connection_refused, there, [&] { striped.lock(); });
    expect_refusal_after(brief, errc::connection_refused, there, [&] { lock_all both(lock); });
    auto promised = lock.async_acquire({}, boost::asio::use_future);
    EXPECT_THROW(promised.get(), boost::system::system_error);
}

TEST_F(FirstConnect, AServerThatWasReachedOnceIsWaitedForWithoutALimit) {
    gate.accept();
    client subject{url(), {.first_connect = brief}};
    ASSERT_TRUE(gets_connected(subject));
    gate.refuse();
    gate.cut();
    mutex lock{subject, "stock"};
    auto waiting = in_background([&] { return lock.acquire(); });
    EXPECT_EQ(waiting.wait_for(2 * brief), std::future_status::timeout);
    gate.accept();
    EXPECT_TRUE(waiting.get());
}

// It does not wait for its request timeout, which is longer than an_age.
TEST_F(FirstConnect, WhatDoesNotWaitEndsWithItsAttempt) {
    expect_client_refused(errc::connection_refused, url() + "&timeout=1h", at_port(gate.port()));
}

TEST_F(FirstConnect, AWaitMayBeCancelled) {
    client subject{url()};
    fail_once(subject);
    mutex lock{subject, "stock"};
    std::stop_source stop;
    auto waiting = in_background([&] { return condition_of([&] { lock.acquire({.stop = stop.get_token()}); }); });
    EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
    stop.request_stop();
    EXPECT_EQ(to_text(waiting.get()), to_text(errc::cancelled));
}

TEST_F(FirstConnect, WhatNoRetryCuresEndsEveryWaitAtOnce) {
    redis_server guarded{{.requirepass = "right"}};
    client subject{"redis://:hunter2@" + at_port(guarded.port()), {.first_connect = 1h}};
    mutex lock{subject, "stock"};
    expect_refusal(errc::wrong_password, at_port(guarded.port()), [&] { lock.acquire(); });
    expect_refusal(errc::wrong_password, at_port(guarded.port()), [&] { lock.try_acquire_for(1h); });
}

TEST_F(FirstConnect, TheTimeForItHasLimits) {
    EXPECT_EQ(to_text(condition_of([&] { client(url(), {.first_connect = 0ms}); })), to_text(errc::bad_option));
    EXPECT_EQ(to_text(condition_of([&] { client(url(), {.first_connect = 25h}); })), to_text(errc::bad_option));
}

TEST_F(FirstConnect, SentinelsAreWaitedFor) {
    redis_server sentinel{
        {.config = {"sentinel monitor mine 127.0.0.1 " + std::to_string(server.port()) + " 1"}, .sentinel = true}};
    tcp_proxy to_sentinel{sentinel.port()};
    to_sentinel.refuse();
    client subject{"redis+sentinel://" + at_port(to_sentinel.port()) + "/mine?" + often, {.first_connect = brief}};
    mutex lock{subject, "stock"};
    const std::string there = at_port(to_sentinel.port());
    expect_refusal_after(brief, errc::connection_refused, there, [&] { lock.acquire(); });
    expect_refusal_after(brief, errc::connection_refused, there, [&] { lock.try_acquire_for(brief); });
    auto waiting = in_background([&] { return lock.try_acquire_for(an_age); });
    to_sentinel.accept();
    EXPECT_TRUE(waiting.get());
}

TEST_F(FirstConnect, AClusterIsWaitedFor) {
    redis_cluster cluster;
    tcp_proxy to_member{cluster.members.front().port()};
    to_member.refuse();
    client subject{"redis+cluster://" + at_port(to_member.port()) + "?" + often, {.first_connect = brief}};
    mutex lock{subject, "stock"};
    const std::string there = at_port(to_member.port());
    expect_refusal_after(brief, errc::connection_refused, there, [&] { lock.acquire(); });
    expect_refusal_after(brief, errc::connection_refused, there, [&] { lock.try_acquire_for(brief); });
    auto waiting = in_background([&] { return lock.try_acquire_for(an_age); });
    to_member.accept();
    EXPECT_TRUE(waiting.get());
}

/// One of three servers can be reached, and votes.
class FirstConnectOfThree : public ::testing::Test {
protected:
    FirstConnectOfThree() {
        for (redis_server& each : servers) {
            urls.push_back(gates.emplace_back(each.port()).url() + "?" + often);
            if (gates.size() > 1) gates.back().refuse();
        }
    }
    client make_client(milliseconds first_connect = an_age) {
        return client{urls, {.max_lease = 1s, .first_connect = first_connect}};
    }

    std::vector<redis_server> servers{3};
    std::vector<tcp_proxy> gates;
    std::vector<std::string> urls;
};

TEST_F(FirstConnectOfThree, AMajorityIsWaitedForAndNothingIsLeftMeanwhile) {
    client subject = make_client();
    mutex lock{subject, "stock", {.lease = 1s}};
    auto bounded = in_background([&] { return lock.try_acquire_for(an_age).release(); });
    auto unbounded = in_background([&] { return lock.acquire().release(); });
    EXPECT_EQ(bounded.wait_for(brief), std::future_status::timeout);
    gates[1].accept();
    EXPECT_FALSE(bounded.get());
    EXPECT_FALSE(unbounded.get());
}

TEST_F(FirstConnectOfThree, TheReasonsAreToldAtTheDeadlineAndAfterFirstConnect) {
    client subject = make_client(brief);
    mutex lock{subject, "stock", {.lease = 1s}};
    // Once the first one votes it grants, and is given back because no majority can be reached.
    ASSERT_TRUE(eventually([&] { return std::stoi(servers[0].info("server", "uptime_in_seconds")) > 2; }));
    for (const std::string& there : {at_port(gates[1].port()), at_port(gates[2].port())}) {
        expect_refusal_after(brief, errc::no_quorum, there, [&] { lock.acquire(); });
        expect_refusal_after(brief, errc::no_quorum, there, [&] { lock.try_acquire_for(brief); });
    }
    EXPECT_TRUE(eventually([&] { return servers[0].call({"EXISTS", "hf:{stock}"}).integer == 0; }));
}

}  // namespace
}  // namespace holdfast::testing::first_connect_test
