// Servers and proxies that speak only RESP2, or do not let clients listen, played by real servers without the commands.
// R58
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "integration/crowd.hpp"
#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/in_background.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/sentinel_set.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::resp2_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::string without(const std::string& command) {
    return "rename-command " + command + " \"\"";
}

/// The warnings of a client's log.
class warnings {
public:
    auto sink() {
        return [this](log_level level, const std::string& text) {
            if (level != log_level::warning) return;
            const std::lock_guard guard{mutex_};
            all_ += text + "\n";
        };
    }
    std::string all() {
        const std::lock_guard guard{mutex_};
        return all_;
    }
    int count_of(const std::string& words) {
        const std::string text = all();
        int found = 0;
        for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++found;
        return found;
    }

private:
    std::mutex mutex_;
    std::string all_;
};

const std::string tells_of_resp2 = "refuses HELLO 3";
const std::string tells_of_polls = "so they poll";

/// Where `theirs` waits, a release hands the lock over.
void expect_hand_over(redis_server& server, lease held, const std::string& name, const std::function<lease()>& waits) {
    auto waiting = in_background(waits);
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{" + name + "}:queue"}).integer == 1; }, an_age));
    const std::uint64_t token = held.token();
    EXPECT_FALSE(held.release());
    const lease handed = waiting.get();
    EXPECT_GT(handed.token(), token);
    EXPECT_GT(handed.validity(), 0ms);
}

void use_all_kinds(const std::string& url, const std::function<redis_server&(const std::string&)>& server_of) {
    client subject{url};
    client other{url};
    const mutex_options terms{.lease = 60s};
    mutex lock{subject, "stock", terms};
    mutex theirs{other, "stock", terms};
    lease held = lock.acquire();
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(theirs.try_acquire());
    try {
        EXPECT_FALSE(theirs.try_acquire_for(1ms));
    } catch (const error& why) {
        EXPECT_EQ(why.condition(), errc::request_timed_out) << "a machine that stalls";
    }
    expect_hand_over(server_of("hf:{stock}"), std::move(held), "stock", [&] { return theirs.try_acquire_for(an_age); });

    const shared_mutex_options shared_terms{.lease = 60s};
    shared_mutex catalog{subject, "catalog", shared_terms};
    shared_mutex their_catalog{other, "catalog", shared_terms};
    lease reading = catalog.acquire_shared();
    EXPECT_TRUE(their_catalog.try_acquire_shared());
    lease writing = reading.try_upgrade_for(an_age);
    ASSERT_TRUE(writing);
    expect_hand_over(server_of("hf:{catalog}"), std::move(writing), "catalog",
                     [&] { return their_catalog.try_acquire_shared_for(an_age); });
}

struct lacking {
    std::string name;
    std::vector<std::string> config;
    std::string options;
    bool tells_of_resp2 = false;
    bool tells_of_polls = false;
    friend std::ostream& operator<<(std::ostream& out, const lacking& what) { return out << what.name; }
};

const lacking kinds[] = {
    {"NoHello", {without("HELLO")}, "", true, false},
    {"NoHelloNoSubscribe", {without("HELLO"), without("SUBSCRIBE")}, "", true, true},
    {"NoSubscribe", {without("SUBSCRIBE")}, "", false, true},
    {"NoHelloNoPubsub", {without("HELLO"), without("PUBSUB")}, "", true, false},
    {"NoHelloByHand", {without("HELLO")}, "?resp=2", false, false},
    {"PollsByHand",
     {without("HELLO"), without("SUBSCRIBE"), without("PUBLISH"), without("PUBSUB")},
     "?resp=2&wake=poll",
     false,
     false},
    {"Resp2ByHand", {}, "?resp=2", false, false},
    {"Resp3AndPolls", {}, "?wake=poll", false, false},
};

class ServerThatLacks : public ::testing::TestWithParam<lacking> {};

TEST_P(ServerThatLacks, ServesAllKindsOfLocks) {
    redis_server server{{.config = GetParam().config}};
    use_all_kinds(server.url() + GetParam().options, [&](const std::string&) -> redis_server& { return server; });
}

TEST_P(ServerThatLacks, IsToldOfOnceHoweverManyConnectionsItTakes) {
    redis_server server{{.config = GetParam().config}};
    warnings log;
    client subject{server.url() + GetParam().options, {.log = log.sink()}};
    client other{server.url()};
    mutex lock{subject, "stock", {.lease = 60s}};
    for (int i = 0; i < 3; ++i) {
        mutex theirs{other, "stock", {.lease = 60s}};
        expect_hand_over(server, theirs.acquire(), "stock", [&] { return lock.try_acquire_for(an_age); });
        server.call({"CLIENT", "KILL", "TYPE", "normal"});
    }
    EXPECT_EQ(log.count_of(tells_of_resp2), GetParam().tells_of_resp2 ? 1 : 0) << log.all();
    EXPECT_EQ(log.count_of(tells_of_polls), GetParam().tells_of_polls ? 1 : 0) << log.all();
}

INSTANTIATE_TEST_SUITE_P(Each, ServerThatLacks, ::testing::ValuesIn(kinds),
                         [](const auto& each) { return each.param.name; });

TEST(Resp2, RightsMayBeLackingInsteadOfCommands) {
    redis_server server{{.acl_users = {"ann on >pw ~* &* +@all", "bob on >pw ~* resetchannels +@all"}}};
    const std::string at = "@127.0.0.1:" + std::to_string(server.port());
    for (const std::string login : {"ann:pw", "bob:pw"}) {
        use_all_kinds("redis://" + login + at, [&](const std::string&) -> redis_server& { return server; });
        server.call({"FLUSHALL"});
    }
}

TEST(Resp2, PollingMayBeRuledOut) {
    redis_server server{{.acl_users = {"bob on >pw ~* resetchannels +@all"}}};
    client subject{"redis://bob:pw@127.0.0.1:" + std::to_string(server.port()) + "?wake=push"};
    client other{server.url()};
    mutex theirs{other, "stock"};
    const lease held = theirs.acquire();
    mutex lock{subject, "stock"};
    expect_refusal(errc::no_permission, at_port(server.port()), [&] { lock.acquire(); });
}

// Over TLS: connect_tls_test.cpp.
TEST(Resp2, WorksOverUnixSockets) {
    redis_server server{{.unix_socket = true, .requirepass = password}};
    use_all_kinds(server.unix_url() + "?resp=2", [&](const std::string&) -> redis_server& { return server; });
}

TEST(Resp2, WorksBehindSentinels) {
    sentinel_set set;
    use_all_kinds(set.url() + "?resp=2", [&](const std::string&) -> redis_server& { return set.primary(); });
}

// Waiters poll there.
TEST(Resp2, WorksInACluster) {
    redis_cluster cluster{{.replicas = false, .config = {without("HELLO")}}};
    use_all_kinds(cluster.url(), [&](const std::string& key) -> redis_server& { return cluster.owner_of(key); });
}

TEST(Resp2, OneOfSeveralServersMaySpeakIt) {
    redis_server servers[] = {redis_server{}, redis_server{{.config = {without("HELLO")}}},
                              redis_server{{.config = {without("HELLO"), without("SUBSCRIBE")}}}};
    const std::vector<std::string> urls{servers[0].url(), servers[1].url(), servers[2].url()};
    const client_options options{.max_lease = 1s};
    client subject{urls, options};
    client other{urls, options};
    const mutex_options terms{.lease = 1s};
    mutex lock{subject, "stock", terms};
    mutex theirs{other, "stock", terms};
    lease held = lock.try_acquire_for(an_age);
    ASSERT_TRUE(held);
    auto waiting = in_background([&] { return theirs.try_acquire_for(an_age); });
    EXPECT_TRUE(eventually([&] { return servers[0].call({"ZCARD", "hf:{stock}:queue"}).integer == 1; }, an_age));
    held.release();
    EXPECT_TRUE(waiting.get());
}

/// Six who take turns with one lock: two by RESP3, two by RESP2, two by polls.
class MixedCrowd : public ::testing::Test {
protected:
    static constexpr std::size_t many = 6;
    redis_server server;
    std::vector<std::unique_ptr<client>> clients = [this] {
        std::vector<std::unique_ptr<client>> made;
        for (std::size_t i = 0; i < many; ++i) {
            const char* const options[] = {"", "?resp=2", "?wake=poll"};
            made.push_back(std::make_unique<client>(server.url() + options[i % 3]));
        }
        return made;
    }();
};

TEST_F(MixedCrowd, LosesNoUpdate) {
    constexpr int each = 15;
    std::atomic<int> counter = 0;
    std::vector<std::jthread> crowd;
    for (auto& subject : clients) {
        crowd.emplace_back([&] {
            mutex lock{*subject, "stock", {.lease = 60s}};
            for (int i = 0; i < each; ++i) {
                const lease held = lock.acquire();
                const int seen = counter;
                std::this_thread::yield();
                counter = seen + 1;
            }
        });
    }
    crowd.clear();
    EXPECT_EQ(counter, static_cast<int>(many) * each);
}

TEST_F(MixedCrowd, LosesNoUpdateBetweenReaders) {
    constexpr int each = 10;
    std::atomic<int> counter = 0;
    std::atomic<int> torn = 0;
    std::vector<std::jthread> crowd;
    for (auto& subject : clients) {
        crowd.emplace_back([&] {
            shared_mutex lock{*subject, "stock", {.lease = 60s}};
            for (int i = 0; i < each; ++i) {
                const bool reads = i % 2 == 0;
                const lease held = reads ? lock.acquire_shared() : lock.acquire();
                const int seen = counter;
                std::this_thread::yield();
                if (!reads) counter = seen + 1;
                if (reads && counter != seen) ++torn;
            }
        });
    }
    crowd.clear();
    EXPECT_EQ(counter, static_cast<int>(many) * each / 2);
    EXPECT_EQ(torn, 0);
}

// A machine that stalls for two seconds makes a waiter that polls look dead, so such a round does not count.
TEST_F(MixedCrowd, IsServedInTheOrderOfItsArrival) {
    for (int round = 0; round < 5; ++round) {
        const pulse machine;
        const std::string name = "stock " + std::to_string(round);
        mutex first{*clients[0], name, {.lease = 60s}};
        lease held = first.acquire();
        std::mutex guard;
        std::vector<std::size_t> order;
        std::vector<std::jthread> crowd;
        for (std::size_t i = 1; i < many; ++i) {
            crowd.emplace_back([&, i] {
                mutex lock{*clients[i], name, {.lease = 60s}};
                const lease got = lock.acquire();
                const std::lock_guard one_at_a_time{guard};
                order.push_back(i);
            });
            const auto is_queued = [&] {
                return server.call({"ZCARD", "hf:{" + name + "}:queue"}).integer == static_cast<int>(i);
            };
            ASSERT_TRUE(eventually(is_queued, an_age));
        }
        // So that the second connections are there.
        EXPECT_TRUE(eventually([&] { return server.call({"PUBSUB", "CHANNELS", "hf:wake:*"}).elements.size() == 4; }));
        held.release();
        crowd.clear();
        EXPECT_EQ(order.size(), many - 1);
        if (std::ranges::is_sorted(order)) return;
        EXPECT_GE(machine.worst(), 500ms) << "nothing excuses another order";
    }
}

class Resp2Waiter : public ::testing::Test {
protected:
    redis_server server;
    client other{server.url()};
    mutex theirs{other, "stock", {.lease = 60s}};
    lease held = theirs.acquire();

    bool somebody_waits() {
        return eventually([&] { return server.call({"ZCARD", "hf:{stock}:queue"}).integer == 1; }, an_age);
    }
    std::string channel_of_the_waiter() {
        const redis_reply entry = server.call({"HVALS", "hf:{stock}:waiters"});
        if (entry.elements.empty()) return "";
        const std::string& text = entry.elements[0].text;
        return text.substr(text.rfind(' ') + 1);
    }
    bool polls() {
        return eventually([&] { return channel_of_the_waiter() == "-"; }, an_age);
    }
    bool listens() {
        return eventually([&] { return channel_of_the_waiter().starts_with("hf:wake:"); }, an_age);
    }
};

TEST_F(Resp2Waiter, ListensAgainAfterItsSecondConnectionWasCut) {
    warnings log;
    client subject{server.url() + "?resp=2", {.log = log.sink()}};
    mutex lock{subject, "stock", {.lease = 60s}};
    auto waiting = in_background([&] { return lock.try_acquire_for(an_age); });
    ASSERT_TRUE(somebody_waits());
    ASSERT_TRUE(listens());
    for (int i = 1; i <= 3; ++i) {
        server.call({"CLIENT", "KILL", "TYPE", "pubsub"});
        EXPECT_TRUE(eventually([&] { return log.count_of("connection for wake-ups is down") == i; }, an_age));
        EXPECT_TRUE(listens());
        EXPECT_TRUE(eventually(
            [&] {
                return server.call({"PUBSUB", "NUMSUB", channel_of_the_waiter()}).elements.at(1).integer == 1;
            },
            an_age));
    }
    held.release();
    EXPECT_TRUE(waiting.get());
    EXPECT_THAT(log.all(), Not(HasSubstr("connection broke"))) << "the requests have another one";
}

TEST_F(Resp2Waiter, PollsWhileItCannotMakeItsSecondConnection) {
    tcp_proxy proxy{server.port()};
    warnings log;
    client subject{proxy.url() + "?resp=2", {.log = log.sink()}};
    subject.ping();
    proxy.refuse();
    mutex lock{subject, "stock", {.lease = 60s}};
    auto waiting = in_background([&] { return lock.try_acquire_for(an_age); });
    ASSERT_TRUE(somebody_waits());
    EXPECT_TRUE(polls());
    EXPECT_TRUE(eventually([&] { return log.count_of("connection for wake-ups is down") == 1; }, an_age));
    held.release();
    const lease got = waiting.get();
    EXPECT_TRUE(got);
    EXPECT_EQ(log.count_of("connection for wake-ups is down"), 1) << "said once";
    proxy.accept();
}

TEST_F(Resp2Waiter, IsServedAcrossARestartOfTheServer) {
    for (const std::string options : {"?resp=2", "?wake=poll", "?resp=2&wake=poll"}) {
        redis_server lasting{{.persistent = true}};
        client holds{lasting.url()};
        client subject{lasting.url() + options};
        lease kept = mutex{holds, "shelf", {.lease = 60s}}.acquire();
        mutex lock{subject, "shelf", {.lease = 60s}};
        auto waiting = in_background([&] { return lock.try_acquire_for(an_age); });
        const auto is_queued = [&] { return lasting.call({"ZCARD", "hf:{shelf}:queue"}).integer == 1; };
        ASSERT_TRUE(eventually(is_queued, an_age));
        lasting.restart(redis_server::data::keep);
        EXPECT_FALSE(kept.release());
        EXPECT_TRUE(waiting.get()) << options;
    }
}

// Nothing tells a client that polls; it gives back at once what others may want.
TEST_F(Resp2Waiter, AKeptLockIsNotKeptByAClientThatPolls) {
    held.release();
    client subject{server.url() + "?wake=poll"};
    mutex keeps{subject, "stock", {.lease = 60s, .keep = 60s}};
    keeps.acquire().release();
    EXPECT_TRUE(theirs.try_acquire_for(an_age));
}

TEST_F(Resp2Waiter, AKeptLockIsAskedBackOverTheSecondConnection) {
    held.release();
    client subject{server.url() + "?resp=2"};
    mutex keeps{subject, "stock", {.lease = 60s, .keep = 60s}};
    const auto is_kept = [&] {
        keeps.acquire().release();
        return server.call({"GET", "hf:{stock}"}).text.find(".0") != std::string::npos;
    };
    EXPECT_TRUE(eventually(is_kept)) << "as soon as it listens";
    EXPECT_TRUE(theirs.try_acquire_for(an_age));
}

TEST_F(Resp2Waiter, BothConnectionsLogInAnewWhenCredentialsChange) {
    std::mutex guard;
    int changes = 0;
    const auto change = [&] {
        const std::lock_guard one_at_a_time{guard};
        const std::string password = "password-" + std::to_string(++changes);
        server.call({"ACL", "SETUSER", "ann", "on", "resetpass", ">" + password, "~*", "&*", "+@all"});
    };
    change();
    const auto present = [&](const std::string&) {
        const std::lock_guard one_at_a_time{guard};
        return credentials{.user = "ann", .password = "password-" + std::to_string(changes), .expires_in = 50ms};
    };
    client subject{server.url() + "?resp=2&backoff_max=100ms", {.credentials = present}};
    lease kept = mutex{subject, "shelf", {.lease = 20s}}.acquire();
    mutex lock{subject, "stock", {.lease = 60s}};
    auto waiting = in_background([&] { return lock.try_acquire_for(an_age); });
    ASSERT_TRUE(somebody_waits());
    for (int i = 0; i < 20; ++i) {
        change();
        if (i % 5 == 4) server.call({"CLIENT", "KILL", "USER", "ann"});
        std::this_thread::sleep_for(10ms);
    }
    // Whoever lets the old password in is not asked: both connections know the last one.
    const auto logins = server.command_calls("auth");
    EXPECT_TRUE(eventually([&] { return server.command_calls("auth") >= logins + 2; }, an_age));
    EXPECT_TRUE(listens());
    EXPECT_FALSE(kept.lost().stop_requested());
    EXPECT_FALSE(kept.release());
    held.release();
    EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace holdfast::testing::resp2_test
