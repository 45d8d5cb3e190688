// Credentials that change while locks are held and waited for, on real servers. R59
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <array>
#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/sentinel_set.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::credentials_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

/// The password of the user ann, as a store of secrets knows it, and the servers that are told of a new one.
class secret_store {
public:
    explicit secret_store(std::vector<redis_server*> servers) : servers_(std::move(servers)) {
        for (redis_server* each : servers_) set(*each, "password-0");
    }

    credentials_source source(std::optional<milliseconds> expires_in = {}) {
        return [this, expires_in](const std::string& server) {
            EXPECT_THAT(server, Not(HasSubstr("password")));
            ++asked;
            const std::lock_guard guard{mutex_};
            if (is_down_) throw std::runtime_error("the store is down");
            return credentials{.user = "ann", .password = password_, .expires_in = expires_in};
        };
    }
    // The servers first, or the store first: both orders occur in life.
    void change() {
        const int next = ++changes_;
        const std::string password = "password-" + std::to_string(next);
        if (next % 2 == 0) know(password);
        for (redis_server* each : servers_) set(*each, password);
        know(password);
    }
    void is_down(bool now) {
        const std::lock_guard guard{mutex_};
        is_down_ = now;
    }

    std::atomic<int> asked = 0;

private:
    void know(const std::string& password) {
        const std::lock_guard guard{mutex_};
        password_ = password;
    }
    static void set(redis_server& server, const std::string& password) {
        const auto answer =
            server.call({"ACL", "SETUSER", "ann", "on", "resetpass", ">" + password, "~*", "&*", "+@all"});
        EXPECT_EQ(answer.text, "OK");
    }

    const std::vector<redis_server*> servers_;
    std::mutex mutex_;
    std::string password_ = "password-0";
    bool is_down_ = false;
    int changes_ = 0;
};

/// All lines of a client's log.
class lines {
public:
    auto sink() {
        return [this](log_level, const std::string& text) {
            const std::lock_guard guard{mutex_};
            all_ += text + "\n";
        };
    }
    std::string all() {
        const std::lock_guard guard{mutex_};
        return all_;
    }

private:
    std::mutex mutex_;
    std::string all_;
};

std::string refusing_default(redis_server& server) {
    server.call({"ACL", "SETUSER", "default", "resetpass", ">nobody knows it"});
    return "redis://127.0.0.1:" + std::to_string(server.port());
}

/// 200 held locks, 50 waiters, and 10 locks that are handed over all the time; passwords change 100 times, connections
/// are cut in between, and every hold is renewed and every waiter polls several times meanwhile.
TEST(Credentials, ChangeUnderHeldLocksAndWaitersAndNothingIsLost) {
    constexpr int held_locks = 200;
    constexpr int waiters = 50;
    constexpr int passed_on = 10;
    constexpr int changes = 100;
    constexpr auto lease_time = 3s;  // renewed each second
    redis_server server;
    secret_store store{{&server}};
    lines log;
    const auto figures = std::make_shared<metrics>();
    std::atomic<int> served = 0;
    std::atomic<int> cycles = 0;
    std::atomic<int> errors = 0;
    {
        client subject{"redis://127.0.0.1:" + std::to_string(server.port()) + "?client_name=subject&backoff_max=100ms",
                       {.metrics = figures, .log = log.sink(), .credentials = store.source(50ms)}};
        std::vector<lease> held;
        std::vector<std::uint64_t> tokens;
        for (int i = 0; i < held_locks; ++i) {
            held.push_back(mutex{subject, "shelf " + std::to_string(i), {.lease = lease_time}}.acquire());
            tokens.push_back(held.back().token());
        }
        std::vector<std::jthread> queue;
        for (int i = 0; i < waiters; ++i) {
            queue.emplace_back([&, i] {
                mutex lock{subject, "shelf " + std::to_string(i), {.lease = lease_time}};
                if (const lease got = lock.try_acquire_for(120s)) ++served;
            });
        }
        ASSERT_TRUE(eventually([&] { return server.call({"EXISTS", "hf:{shelf 49}:queue"}).integer == 1; }));
        std::atomic<bool> enough = false;
        std::array<std::atomic<int>, passed_on> inside{};
        std::vector<std::jthread> belts;
        for (int i = 0; i < 2 * passed_on; ++i) {
            belts.emplace_back([&, i] {
                std::atomic<int>& here = inside.at(static_cast<std::size_t>(i % passed_on));
                mutex lock{subject, "belt " + std::to_string(i % passed_on), {.lease = lease_time}};
                while (!enough) {
                    lease mine = lock.try_acquire_for(60s);
                    if (!mine || ++here != 1) ++errors;
                    std::this_thread::sleep_for(2ms);
                    --here;
                    if (mine.lost().stop_requested() || mine.release()) ++errors;
                    ++cycles;
                }
            });
        }
        const auto renewed_before = figures->renewals.load();
        const auto handed_over_before = figures->handed_over.load();
        for (int i = 0; i < changes; ++i) {
            store.change();
            // The server lets nobody in with the old password, and some connections it ends.
            if (i % 10 == 9) server.call({"CLIENT", "KILL", "USER", "ann"});
            std::this_thread::sleep_for(60ms);
        }
        enough = true;
        belts.clear();
        EXPECT_EQ(errors, 0) << "of " << cycles << " cycles";
        EXPECT_GT(figures->renewals.load() - renewed_before, 3 * held_locks);
        EXPECT_GT(figures->handed_over.load() - handed_over_before, 100);
        EXPECT_GE(figures->links.load(), 1 + changes / 10);
        EXPECT_EQ(figures->losses.load(), 0);
        const int asked_before = store.asked;
        EXPECT_TRUE(eventually([&] { return store.asked > asked_before; })) << "it still asks";
        for (int i = 0; i < held_locks; ++i) {
            const lease& each = held[static_cast<std::size_t>(i)];
            EXPECT_EQ(each.token(), tokens[static_cast<std::size_t>(i)]);
            EXPECT_GT(each.validity(), 0ms) << i;
            EXPECT_FALSE(each.lost().stop_requested()) << i;
        }
        EXPECT_EQ(served, 0) << "all are held";
        for (lease& each : held) EXPECT_FALSE(each.release());
        EXPECT_TRUE(eventually([&] { return served == waiters; }));
    }
    EXPECT_THAT(log.all(), Not(HasSubstr("password-")));
}

// The login of one server hangs; a majority of the others must be enough.
TEST(Credentials, ASlowAnswerForOneServerDelaysNoOther) {
    redis_server slow;
    redis_server second;
    redis_server third;
    std::atomic<bool> may_return = false;
    std::atomic<int> hanging = 0;
    const std::string of_slow = ":" + std::to_string(slow.port()) + "/";
    // Servers that were just started vote after `max_lease`.
    client subject{{slow.url(), second.url(), third.url()},
                   {.max_lease = 2s, .credentials = [&](const std::string& server) {
                        if (server.find(of_slow) == std::string::npos) return credentials{};
                        EXPECT_EQ(++hanging, 1) << "one question at a time for each server";
                        while (!may_return) std::this_thread::sleep_for(1ms);
                        --hanging;
                        return credentials{};
                    }}};
    const std::shared_ptr<void> at_the_end(nullptr, [&](void*) { may_return = true; });
    EXPECT_TRUE((mutex{subject, "stock", {.lease = 2s}}.try_acquire_for(30s)));
    EXPECT_EQ(hanging, 1);
}

TEST(Credentials, ALivingConnectionLogsInAnew) {
    redis_server server;
    secret_store store{{&server}};
    const std::string url = refusing_default(server);
    client subject{url + "?client_name=subject", {.credentials = store.source(100ms)}};
    subject.ping();
    const auto id_of_link = [&] {
        const std::string list = server.call({"CLIENT", "LIST"}).text;
        const auto at = list.find("name=subject");
        return list.substr(list.rfind("id=", at), list.find(' ', list.rfind("id=", at)) - list.rfind("id=", at));
    };
    const std::string before = id_of_link();
    const auto logins = server.command_calls("auth");
    store.change();
    EXPECT_TRUE(eventually([&] { return server.command_calls("auth") > logins; }));
    subject.ping();
    EXPECT_EQ(id_of_link(), before);
}

TEST(Credentials, ARefusedLoginIsToldAndTheConnectionGoesOn) {
    redis_server server;
    secret_store store{{&server}};
    lines log;
    client subject{refusing_default(server), {.log = log.sink(), .credentials = store.source(50ms)}};
    mutex lock{subject, "stock"};
    lease held = lock.acquire();
    // The server knows a new password, and the store does not.
    server.call({"ACL", "SETUSER", "ann", "resetpass", ">password-else"});
    store.is_down(true);
    EXPECT_TRUE(eventually([&] { return log.all().find("the store is down") != std::string::npos; }));
    EXPECT_FALSE(held.renew()) << "the connection is as it was";
    server.call({"CLIENT", "KILL", "USER", "ann"});
    EXPECT_TRUE(eventually([&] { return log.all().find("WRONGPASS") != std::string::npos; }));
    store.is_down(false);
    store.change();
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
    EXPECT_THAT(log.all(), Not(HasSubstr("password-")));
}

TEST(Credentials, WrongOnesAreToldAsWhatTheyAre) {
    redis_server server;
    const std::string url = refusing_default(server);
    client wrong{url, {.credentials = [](const std::string&) { return credentials{"ann", "hunter2", {}}; }}};
    expect_refusal(errc::wrong_password, at_port(server.port()), [&] { mutex{wrong, "stock"}.acquire(); });
    client throws{url + "?timeout=300ms", {.credentials = [](const std::string&) -> credentials {
                      throw std::runtime_error("the store is down");
                  }}};
    expect_refusal(errc::no_credentials, "the store is down", [&] { throws.ping(); });
    client odd{url + "?timeout=300ms", {.credentials = [](const std::string&) -> credentials { throw 7; }}};
    expect_refusal(errc::no_credentials, "no std::exception", [&] { odd.ping(); });
}

TEST(Credentials, ASlowCallbackDelaysNobodyElse) {
    redis_server server;
    redis_server other;
    std::atomic<bool> may_return = false;
    client slow{server.url() + "?timeout=300ms", {.credentials = [&](const std::string&) {
                    while (!may_return) std::this_thread::sleep_for(1ms);
                    return credentials{};
                }}};
    mutex lock{slow, "stock"};
    const auto begun = std::chrono::steady_clock::now();
    expect_refusal(errc::no_credentials, at_port(server.port()), [&] { lock.try_acquire(); });
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
    may_return = true;
    EXPECT_TRUE(lock.acquire());
}

TEST(Credentials, AClientThatIsDestroyedByTheCallbackEndsCleanly) {
    redis_server server;
    std::optional<client> subject;
    std::atomic<bool> destroyed = false;
    std::atomic<bool> made = false;
    subject.emplace(server.url(), client_options{.credentials = [&](const std::string&) {
                        while (!made) std::this_thread::sleep_for(1ms);
                        subject.reset();
                        destroyed = true;
                        return credentials{};
                    }});
    made = true;
    EXPECT_TRUE(eventually([&] { return destroyed.load(); }));
}

TEST(Credentials, APasswordFileIsReadAgainAtEachConnection) {
    redis_server server;
    secret_store store{{&server}};
    const temp_directory folder{"hf-credentials-"};
    const std::string file = (folder.path() / "password").string();
    const auto write = [&](const std::string& text) { std::ofstream(file) << text << "\n"; };
    write("password-0");
    lines log;
    client subject{refusing_default(server) + "?user=ann&password_file=" + file, {.log = log.sink()}};
    subject.ping();
    store.change();
    write("password-1");
    server.call({"CLIENT", "KILL", "USER", "ann"});
    subject.ping();
    // Without the file the last password is used.
    std::filesystem::remove(file);
    server.call({"CLIENT", "KILL", "USER", "ann"});
    subject.ping();
    EXPECT_TRUE(eventually([&] { return log.all().find("cannot be opened") != std::string::npos; }));
    EXPECT_THAT(log.all(), Not(HasSubstr("password-")));
}

TEST(Credentials, ReplicasAreAskedOverALinkThatLogsInByTheSameCallback) {
    redis_server server;
    secret_store store{{&server}};
    client subject{refusing_default(server), {.credentials = store.source()}};
    mutex lock{subject, "stock", {.replicas = 1}};
    expect_refusal(errc::not_replicated, at_port(server.port()), [&] { lock.try_acquire(); });
    EXPECT_EQ(store.asked, 2);
}

TEST(Credentials, BothTheUrlAndACallbackAreRefused) {
    const credentials_source source = [](const std::string&) { return credentials{}; };
    const auto refused = [](const std::string& url, const client_options& options, const std::string& why) {
        expect_refusal(errc::bad_option, why, [&] { client{url, options}; });
    };
    refused("redis://:hunter2@h", {.credentials = source}, "so the URL must not");
    refused("redis://h", {.sentinel_credentials = source}, "redis+sentinel://");
}

TEST(Credentials, AllLinksOfAClusterUseTheCallback) {
    redis_cluster cluster{{.replicas = false}};
    std::vector<redis_server*> members;
    for (redis_server& each : cluster.members) members.push_back(&each);
    secret_store store{members};
    client subject{cluster.url(), {.credentials = store.source(100ms)}};
    for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 10; ++i) EXPECT_TRUE((mutex{subject, "shelf " + std::to_string(i)}.try_acquire_for(20s)));
        store.change();
        for (redis_server* each : members) each->call({"CLIENT", "KILL", "USER", "ann"});
    }
}

TEST(Credentials, SentinelsHaveTheirOwn) {
    sentinel_set set{{.password = "hunter2", .sentinel_password = "hunter3"}};
    std::string url = set.url();
    url.erase(url.find("//") + 2, url.find('@') + 1 - url.find("//") - 2);
    url = url.substr(0, url.find('?'));
    std::atomic<int> asked_for_sentinels = 0;
    const client_options options{.credentials = [](const std::string&) { return credentials{.password = "hunter2"}; },
                                 .sentinel_credentials =
                                     [&](const std::string&) {
                                         ++asked_for_sentinels;
                                         return credentials{.password = "hunter3"};
                                     }};
    client subject{url, options};
    EXPECT_TRUE((mutex{subject, "stock"}.try_acquire()));
    EXPECT_GE(asked_for_sentinels, 1);
    for (redis_server& each : set.sentinels) EXPECT_THAT(each.log_tail(), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace holdfast::testing::credentials_test
