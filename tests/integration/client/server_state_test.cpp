// Real servers that refuse: without the rights, full, read-only, busy, unable to save, or with other things at the key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <holdfast/holdfast.hpp>

#include <filesystem>
#include <future>
#include <thread>

#include "integration/refusal.hpp"
#include "redis/resp/error_reply.hpp"
#include "support/admin_link.hpp"
#include "support/documented_user.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::server_state_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Whether they are is seen in rights_test.cpp.
const std::string enough = " " + documented("locks").words_alone();

std::string bob(const redis_server& server) {
    return "redis://bob:hunter2@" + at_port(server.port());
}

redis_server server_with(const std::string& rights) {
    return redis_server{{.acl_users = {"bob on >hunter2" + rights}}};
}

void expect_no_permission(const std::string& rights) {
    SCOPED_TRACE(rights);
    redis_server server = server_with(rights);
    client subject{bob(server)};
    mutex lock{subject, "stock"};
    expect_refusal(errc::no_permission, at_port(server.port()), [&] { lock.try_acquire(); });
    expect_refusal(errc::no_permission, at_port(server.port()), [&] { lock.try_acquire_for(5s); });
    EXPECT_EQ(server.call({"KEYS", "hf:{stock}*"}).elements.size(), 0U);
}

TEST(AclUser, WithoutEvalsha) {
    expect_no_permission(enough + " -evalsha -eval");
    expect_no_permission(enough + " -eval");  // the text must be sent once
}

TEST(AclUser, WithoutTheKeys) {
    expect_no_permission(enough + " resetkeys ~other:*");
}

TEST(AclUser, WithoutACommandInsideOfTheScript) {
    expect_no_permission(enough + " -set");
    expect_no_permission(enough + " -get");
}

// Each server has its own words for that. These scripts are not ours: ours declare their keys, so that EVAL itself is
// refused, and go on where they may not publish.
TEST(AclUser, WhateverIsRefusedInsideOfAScriptIsAMissingRight) {
    redis_server server{
        {.unix_socket = true, .acl_users = {"bob on >hunter2 ~mine* &mine* +@all -set -pubsub|numsub"}}};
    admin_link link{server.unix_path(), {.user = "bob", .password = "hunter2"}};
    for (const std::string call : {"'set', 'mine', '1'", "'pubsub', 'numsub', 'mine'", "'get', 'theirs'",
                                   "'publish', 'theirs', '1'", "'spublish', 'theirs', '1'"}) {
        for (const std::string function : {"call", "pcall"}) {
            const redis_reply told = link.call({"EVAL", "return redis." + function + "(" + call + ")", "0"});
            EXPECT_TRUE(told.is_error()) << call;
            EXPECT_EQ(to_text(redis::classify_error(told.text, "s").code), to_text(errc::no_permission)) << told.text;
        }
    }
    const redis_reply wrong =
        link.call({"EVAL", "redis.call('lpush', KEYS[1], '1') redis.call('incr', KEYS[1])", "1", "mine"});
    EXPECT_EQ(to_text(redis::classify_error(wrong.text, "s").code), to_text(errc::wrong_type)) << wrong.text;
}

// Only waiting needs the channel: who does not wait is not disturbed, and no hold is put at risk.
TEST(AclUser, WithoutTheChannelCannotWaitUnlessItMayPollButLosesNothing) {
    for (const std::string& lacking : {enough + " resetchannels", enough + " -subscribe"}) {
        SCOPED_TRACE(lacking);
        redis_server server = server_with(lacking);
        client polls{bob(server)};
        EXPECT_TRUE((mutex{polls, "other"}.try_acquire_for(an_age)));
        client subject{bob(server) + "?wake=push"};
        mutex lock{subject, "stock"};
        mutex other{subject, "other"};
        lease held = lock.try_acquire();
        ASSERT_TRUE(held);
        for (int i = 0; i < 2; ++i) {
            expect_refusal(errc::no_permission, at_port(server.port()), [&] { other.try_acquire_for(5s); });
        }
        EXPECT_TRUE(other.try_acquire());
        EXPECT_FALSE(held.renew());
        EXPECT_FALSE(held.release());
    }
}

TEST(ServerState, OutOfMemory) {
    redis_server server{{.config = {"maxmemory-policy noeviction"}}};
    client subject{server.url()};
    mutex lock{subject, "stock"};
    lease held = lock.acquire();
    ASSERT_EQ(server.call({"CONFIG", "SET", "maxmemory", "1"}).text, "OK");
    mutex other{subject, "other"};
    expect_refusal(errc::out_of_memory, at_port(server.port()), [&] { other.try_acquire(); });
    expect_refusal(errc::out_of_memory, at_port(server.port()), [&] { other.try_acquire_for(2s); });
    EXPECT_FALSE(held.renew()) << "a full server keeps what it has";
    EXPECT_FALSE(held.release());
    EXPECT_EQ(server.call({"EXISTS", "hf:{stock}", "hf:{other}"}).integer, 0);
    server.call({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_TRUE(other.try_acquire());
}

TEST(ServerState, WhoWaitsIsServedWhenThereIsMemoryAgain) {
    redis_server server{{.config = {"maxmemory-policy noeviction"}}};
    client subject{server.url()};
    subject.ping();
    ASSERT_EQ(server.call({"CONFIG", "SET", "maxmemory", "1"}).text, "OK");
    mutex lock{subject, "stock"};
    auto waiting = std::async(std::launch::async, [&] { return lock.try_acquire_for(an_age); });
    EXPECT_TRUE(eventually([&] { return server.command_calls("evalsha") > 2; }));
    ASSERT_EQ(server.call({"CONFIG", "SET", "maxmemory", "0"}).text, "OK");
    EXPECT_TRUE(waiting.get());
}

TEST(ServerState, AReplicaFromTheStart) {
    const reserved_port dead_primary = reserve_port();
    redis_server server{{.config = {"replicaof 127.0.0.1 " + std::to_string(dead_primary.port)}}};
    expect_client_refused(errc::read_only, server.url() + "?timeout=10s", at_port(server.port()));
}

TEST(ServerState, AReplicaFromNowOnAndAPrimaryAgain) {
    const reserved_port dead_primary = reserve_port();
    redis_server server;
    client subject{server.url() + "?timeout=1s"};
    ASSERT_TRUE(gets_connected(subject));
    mutex lock{subject, "stock"};
    ASSERT_FALSE(lock.try_acquire().release());  // nothing is in flight any more
    ASSERT_EQ(server.call({"REPLICAOF", "127.0.0.1", std::to_string(dead_primary.port)}).text, "OK");
    for (int i = 0; i < 2; ++i) {
        expect_refusal(errc::read_only, at_port(server.port()), [&] { lock.try_acquire(); });
    }
    ASSERT_EQ(server.call({"REPLICAOF", "NO", "ONE"}).text, "OK");
    EXPECT_TRUE(eventually([&] {
        try {
            return static_cast<bool>(lock.try_acquire());
        } catch (const error&) {
            return false;
        }
    })) << "without a new client";
}

TEST(ServerState, LoginTakenAwayInMidLife) {
    redis_server server{{.acl_users = {"bob on >hunter2 ~* &* +@all"}}};
    client subject{bob(server)};
    mutex lock{subject, "stock"};
    ASSERT_FALSE(lock.try_acquire().release());  // nothing is in flight any more
    server.call({"ACL", "SETUSER", "bob", "off"});
    server.call({"CLIENT", "KILL", "USER", "bob"});
    expect_refusal(errc::wrong_password, at_port(server.port()), [&] { lock.try_acquire(); });
    server.call({"ACL", "SETUSER", "bob", "on"});
    EXPECT_TRUE(eventually([&] {
        try {
            return static_cast<bool>(lock.try_acquire());
        } catch (const error&) {
            return false;
        }
    }));
}

// Another client's endless script, ended by the destructor.
class endless_script {
public:
    explicit endless_script(redis_server& server) : server_(server), link_(connect_tcp(server.port())) {
        send_all(link_, "*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n");
        EXPECT_TRUE(eventually([&] { return server_.call({"PING"}).is_error(); }));
    }
    ~endless_script() {
        EXPECT_TRUE(eventually([&] {
            server_.call({"SCRIPT", "KILL"});
            return !server_.call({"PING"}).is_error();
        }));
    }

private:
    redis_server& server_;
    unique_fd link_;
};

TEST(ServerState, BlockedByAScript) {
    redis_server server{{.config = {"lua-time-limit 5"}}};
    client connected{server.url()};
    connected.ping();
    client late{server.url()};
    mutex lock{connected, "stock"};
    {
        const endless_script blocks{server};
        expect_refusal(errc::busy_script, at_port(server.port()), [&] { lock.try_acquire(); });
        mutex other{late, "other"};
        expect_refusal(errc::busy_script, at_port(server.port()), [&] { other.try_acquire(); });
    }
    EXPECT_TRUE(lock.try_acquire());
}

// A refused release did not happen: it must be tried again, or the lock stays taken until its lease ends.
TEST(ServerState, AReleaseRefusedByABusyServerGoesOnInTheBackground) {
    redis_server server{{.config = {"lua-time-limit 5"}}};
    client subject{server.url(), {.max_lease = 1h}};
    mutex lock{subject, "stock", {.lease = 10min}};
    lease held = lock.acquire();
    {
        const endless_script blocks{server};
        EXPECT_TRUE(held.release()) << "the caller is told that it has not happened yet";
    }
    EXPECT_TRUE(eventually([&] { return server.call({"EXISTS", "hf:{stock}"}).integer == 0; }));
}

TEST(ServerState, UnableToSave) {
    redis_server server{{.config = {"save 3600 1", "stop-writes-on-bgsave-error yes", "dbfilename blocked"}}};
    std::filesystem::create_directory(server.directory() / "blocked");
    client subject{server.url()};
    subject.ping();
    server.call({"SET", "k", "v"});
    ASSERT_TRUE(eventually([&] {
        server.call({"BGSAVE"});
        return server.info("persistence", "rdb_last_bgsave_status") == "err";
    })) << server.log_tail();
    mutex lock{subject, "stock"};
    expect_refusal(errc::misconfigured, at_port(server.port()), [&] { lock.try_acquire(); });
}

// What a primary does that its replicas have left, if it is told to; docs/deployment.md relies on it.
TEST(ServerState, WithoutTheReplicasThatItWantsItNeitherGrantsNorRenews) {
    redis_server server;
    client subject{server.url()};
    mutex lock{subject, "stock", {.lease = 30s}};
    lease held = lock.acquire();
    // Of a lease that is still full, nothing needs to be written.
    ASSERT_TRUE(eventually([&] { return server.call({"PTTL", "hf:{stock}"}).integer < 30'000; }));
    ASSERT_EQ(server.call({"CONFIG", "SET", "min-replicas-to-write", "1"}).text, "OK");
    mutex other{subject, "other"};
    expect_refusal(errc::misconfigured, at_port(server.port()), [&] { other.try_acquire(); });
    EXPECT_EQ(held.renew(), errc::misconfigured);
    EXPECT_EQ(held.release(), errc::misconfigured);
    ASSERT_EQ(server.call({"CONFIG", "SET", "min-replicas-to-write", "0"}).text, "OK");
    EXPECT_TRUE(eventually([&] {
        return server.call({"EXISTS", "hf:{stock}"}).integer == 0;
    })) << "the release goes on in the background";
}

TEST(ServerState, SomethingElseAtTheKey) {
    redis_server server;
    client subject{server.url()};
    mutex lock{subject, "stock"};
    server.call({"HSET", "hf:{stock}", "a", "b"});
    expect_refusal(errc::wrong_type, at_port(server.port()), [&] { lock.try_acquire(); });
    expect_refusal(errc::wrong_type, at_port(server.port()), [&] { lock.try_acquire_for(5s); });
    EXPECT_EQ(server.call({"HGET", "hf:{stock}", "a"}).text, "b") << "left as it was";
}

}  // namespace
}  // namespace holdfast::testing::server_state_test
