// Links that break: nothing hangs, nothing is left locked, and nobody needs a new client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::reconnect_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::string named(const std::string& url, const std::string& options = "") {
    return url + "?client_name=subject" + options;
}

int links_of(redis_server& server, const std::string& name = "subject") {
    const std::string list = server.call({"CLIENT", "LIST"}).text;
    int count = 0;
    for (std::size_t at = 0; (at = list.find("name=" + name + " ", at)) != std::string::npos; ++at) ++count;
    return count;
}

std::int64_t key_exists(redis_server& server) {
    return server.call({"EXISTS", "hf:{stock}"}).integer;
}

// Once through everything, so that the server knows the scripts and no reply is waited for in between.
void warm_up(client& subject) {
    mutex lock{subject, "warm up"};
    lease held = lock.acquire();
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
}

TEST(Reconnect, AServerThatHangsIsATimeoutAndRecovers) {
    redis_server server;
    client subject{server.url() + "?timeout=300ms"};
    ASSERT_TRUE(gets_connected(subject));
    mutex lock{subject, "stock"};
    server.pause();
    for (int i = 0; i < 2; ++i) {
        expect_refusal(errc::request_timed_out, at_port(server.port()), [&] { lock.try_acquire(); });
        expect_refusal(errc::request_timed_out, at_port(server.port()), [&] { subject.ping(); });
    }
    server.resume();
    EXPECT_TRUE(eventually([&] {
        try {
            return static_cast<bool>(lock.try_acquire());
        } catch (const error&) {
            return false;
        }
    }));
    EXPECT_TRUE(eventually([&] { return key_exists(server) == 0; })) << "what was given up is undone";
}

TEST(Reconnect, AServerThatCameBackIsUsedWithoutANewClient) {
    redis_server server;
    client subject{server.url()};
    mutex lock{subject, "stock"};
    ASSERT_TRUE(lock.try_acquire());
    for (int i = 0; i < 3; ++i) {
        server.kill();
        server.restart(redis_server::data::lose);
        EXPECT_TRUE(lock.try_acquire());
    }
}

TEST(Reconnect, ADeadServerIsToldByTheDeadline) {
    redis_server server;
    client subject{server.url() + "?timeout=1s"};
    ASSERT_TRUE(gets_connected(subject));
    mutex lock{subject, "stock"};
    lease held = lock.acquire();
    server.kill();
    expect_refusal(errc::connection_refused, at_port(server.port()), [&] { subject.ping(); });
    expect_refusal(errc::connection_refused, at_port(server.port()), [&] { lock.try_acquire(); });
    EXPECT_EQ(held.release(), make_error_code(errc::outcome_unknown));
}

TEST(Reconnect, ForgottenScriptsAreNotNoticed) {
    redis_server server;
    client subject{server.url()};
    mutex lock{subject, "stock"};
    for (int i = 0; i < 5; ++i) {
        lease held = lock.try_acquire();
        ASSERT_TRUE(held);
        server.call({"SCRIPT", "FLUSH"});
        EXPECT_FALSE(held.renew());
        server.call({"SCRIPT", "FLUSH"});
        EXPECT_FALSE(held.release());
        server.call({"SCRIPT", "FLUSH"});
    }
}

TEST(Reconnect, AKilledLinkIsMadeAnew) {
    redis_server server;
    client subject{named(server.url())};
    mutex lock{subject, "stock"};
    for (int i = 0; i < 5; ++i) {
        lease held = lock.try_acquire();
        ASSERT_TRUE(held);
        server.call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        EXPECT_FALSE(held.renew());
        server.call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        EXPECT_FALSE(held.release());
        subject.ping();
    }
    EXPECT_EQ(links_of(server), 1);
}

// R05: the reply of a release is lost; repeated on the new link, it finds nothing and was a success.
TEST(Reconnect, AReleaseRepeatedAfterALostReplyIsASuccess) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    client subject{proxy.url() + "?timeout=10s"};
    warm_up(subject);
    mutex lock{subject, "stock"};
    lease held = lock.acquire();
    proxy.stall(direction::to_client);
    boost::system::error_code result = make_error_code(errc::lost);
    std::thread releasing([&] { result = held.release(); });
    EXPECT_TRUE(eventually([&] { return key_exists(server) == 0; }));
    server.call({"SET", "hf:{stock}", "somebody else", "PX", "60000"});
    proxy.unstall(direction::to_client);
    proxy.cut();
    releasing.join();
    EXPECT_FALSE(result) << result.message();
    EXPECT_EQ(server.call({"GET", "hf:{stock}"}).text, "somebody else");
}

TEST(Reconnect, AnAcquireRepeatedAfterALostReplyFindsItsOwnHold) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    client subject{proxy.url() + "?timeout=10s"};
    warm_up(subject);
    mutex lock{subject, "stock"};
    proxy.stall(direction::to_client);
    lease held;
    std::thread acquiring([&] { held = lock.try_acquire(); });
    EXPECT_TRUE(eventually([&] { return key_exists(server) == 1; }));
    proxy.unstall(direction::to_client);
    proxy.cut();
    acquiring.join();
    ASSERT_TRUE(held);
    EXPECT_EQ(server.call({"GET", "hf:{stock}"}).text, held.id());
}

// What an impatient caller left behind is undone on the next link.
TEST(Reconnect, AnAcquireGivenUpWhileTheLinkHungIsUndone) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    client subject{proxy.url() + "?timeout=1s", {.max_lease = 1h}};
    ASSERT_TRUE(gets_connected(subject));
    warm_up(subject);
    mutex lock{subject, "stock", {.lease = 10min}};
    proxy.stall(direction::to_client);
    std::jthread impatient([&] { expect_refusal(errc::request_timed_out, "127.0.0.1", [&] { lock.try_acquire(); }); });
    // Before it is given up: the undo may go out on the hung link, or wait for the next one.
    EXPECT_TRUE(eventually([&] { return key_exists(server) == 1; }));
    impatient.join();
    proxy.unstall(direction::to_client);
    EXPECT_TRUE(eventually([&] { return key_exists(server) == 0; }));
}

TEST(Reconnect, TheOldLinkIsEndedOnTheServer) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    client subject{named(proxy.url(), "&timeout=500ms")};
    ASSERT_TRUE(gets_connected(subject));
    ASSERT_TRUE(eventually([&] { return links_of(server) == 1; }));
    proxy.stall(direction::both);
    expect_refusal(errc::request_timed_out, "127.0.0.1", [&] { subject.ping(); });
    // The server knows nothing of all this: stalled, the proxy does not even pass on that the client has closed.
    EXPECT_EQ(links_of(server), 1);
    proxy.unstall(direction::both);
    EXPECT_TRUE(eventually([&] {
        try {
            subject.ping();
        } catch (const error&) {
            return false;
        }
        return links_of(server) == 1;
    }));
    EXPECT_GE(server.command_calls("client|kill"), 1);
}

TEST(Reconnect, AWaiterGetsItsGrantThoughItsLinkWasCutMeanwhile) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    client holder{server.url()};
    client waiter{named(proxy.url())};
    mutex theirs{holder, "stock"};
    mutex ours{waiter, "stock"};
    lease held = theirs.acquire();
    lease got;
    std::thread waiting([&] { got = ours.acquire(); });
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{stock}:queue"}).integer == 1; }));
    proxy.cut();
    EXPECT_TRUE(eventually([&] {
        return server.call({"PUBSUB", "CHANNELS", "hf:wake:*"}).elements.size() == 2 && links_of(server) == 1;
    })) << "subscribed again";
    held.release();
    waiting.join();
    EXPECT_TRUE(got);
    EXPECT_EQ(server.call({"GET", "hf:{stock}"}).text, got.id());
}

TEST(Reconnect, AWaiterIsServedThoughTheGrantWasPushedIntoADeadLink) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    client holder{server.url()};
    client waiter{proxy.url() + "?timeout=5s"};
    mutex theirs{holder, "stock"};
    mutex ours{waiter, "stock"};
    lease held = theirs.acquire();
    lease got;
    std::thread waiting([&] { got = ours.acquire(); });
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{stock}:queue"}).integer == 1; }));
    proxy.stall(direction::to_client);
    held.release();  // pushes the grant, which never comes
    EXPECT_NE(server.call({"GET", "hf:{stock}"}).text, "");
    proxy.cut();
    proxy.unstall(direction::to_client);
    waiting.join();
    EXPECT_TRUE(got);
    EXPECT_EQ(server.call({"GET", "hf:{stock}"}).text, got.id());
}

// Many threads, and a link that is cut again and again in the middle of their requests.
TEST(Reconnect, EveryOperationEndsAndNothingStaysLockedWhateverIsCut) {
    redis_server server;
    tcp_proxy proxy{server.port()};
    client subject{proxy.url() + "?timeout=5s&backoff_min=1ms&backoff_max=20ms"};
    subject.ping();  // one that is cut before its first word is taken for a TLS port
    std::atomic<int> inside = 0;
    std::atomic<int> acquired = 0;
    std::atomic<bool> two_inside = false;
    std::atomic<bool> stop = false;
    std::vector<std::thread> running;
    for (int t = 0; t < 4; ++t) {
        running.emplace_back([&] {
            mutex lock{subject, "stock", {.lease = 60s}};
            while (!stop) {
                try {
                    lease held = lock.try_acquire_for(10s);
                    if (!held) continue;
                    if (inside.fetch_add(1) != 0) two_inside = true;
                    ++acquired;
                    inside.fetch_sub(1);
                } catch (const error& refused) {
                    ADD_FAILURE() << refused.what();
                }
            }
        });
    }
    std::mt19937 random(11);
    for (int cuts = 0; cuts < 40; ++cuts) {
        const int before = acquired;
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
        proxy.cut();
        EXPECT_TRUE(eventually([&] { return acquired > before; })) << "cut " << cuts;
    }
    stop = true;
    for (std::thread& each : running) each.join();
    EXPECT_FALSE(two_inside);
    EXPECT_TRUE(eventually([&] { return key_exists(server) == 0; })) << "not stuck until the lease ends";
    EXPECT_EQ(server.call({"EXISTS", "hf:{stock}:queue", "hf:{stock}:waiters"}).integer, 0);
}

}  // namespace
}  // namespace holdfast::testing::reconnect_test
