// The servers that tests start: a test on a server which did not stop, pause or restart proves nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/spawn.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::harness_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using data = redis_server::data;

TEST(RedisServer, AnswersOnItsPortAndSocket) {
    redis_server server{{.unix_socket = true}};
    EXPECT_EQ(server.url(), "redis://127.0.0.1:" + std::to_string(server.port()));
    EXPECT_EQ(server.unix_url(), "unix://" + server.unix_path());
    EXPECT_LT(server.unix_path().size(), 100U);
    const unique_fd tcp = connect_tcp(server.port());
    send_all(tcp, ping);
    EXPECT_EQ(receive(tcp, pong.size()), pong);
    const unique_fd local = connect_unix(server.unix_path());
    send_all(local, ping);
    EXPECT_EQ(receive(local, pong.size()), pong);
}

TEST(RedisServer, CanBeWithoutTcp) {
    redis_server server{{.tcp = false, .unix_socket = true}};
    EXPECT_THROW(server.port(), std::logic_error);
    EXPECT_EQ(server.call({"PING"}).text, "PONG");
}

TEST(RedisServer, IsGoneWithItsObject) {
    pid_t pid = 0;
    std::filesystem::path directory;
    {
        redis_server server;
        pid = server.pid();
        directory = server.directory();
        ASSERT_TRUE(process_is_alive(pid));
    }
    EXPECT_FALSE(process_is_alive(pid));
    EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST(RedisServer, OutlivesTheThreadThatStartedIt) {
    std::unique_ptr<redis_server> server;
    std::thread{[&] { server = std::make_unique<redis_server>(); }}.join();
    std::this_thread::sleep_for(a_while);
    EXPECT_TRUE(server->running());
    EXPECT_EQ(server->call({"PING"}).text, "PONG");
}

TEST(RedisServer, MovesWithItsProcess) {
    redis_server first;
    const pid_t pid = first.pid();
    redis_server second = std::move(first);
    EXPECT_EQ(second.pid(), pid);
    redis_server third;
    const pid_t replaced = third.pid();
    third = std::move(second);
    EXPECT_FALSE(process_is_alive(replaced));
    EXPECT_TRUE(process_is_alive(pid));
}

TEST(RedisServer, RepliesAreValues) {
    redis_server server;
    EXPECT_EQ(server.call({"SET", "k", std::string{"a\0b", 3}}).kind, redis_reply::type::status);
    EXPECT_EQ(server.call({"GET", "k"}).text, (std::string{"a\0b", 3}));
    EXPECT_TRUE(server.call({"GET", "none"}).is_nil());
    EXPECT_EQ(server.call({"INCR", "n"}).integer, 1);
    EXPECT_THAT(server.call({"INCR", "k"}).text, StartsWith("ERR"));
    const redis_reply nested = server.call({"EVAL", "return {1, {'x'}, false}", "0"});
    ASSERT_EQ(nested.elements.size(), 3U);
    EXPECT_EQ(nested.elements[1].elements.at(0).text, "x");
    EXPECT_EQ(::testing::PrintToString(nested), "[(integer) 1, [\"x\"], (nil)]");
}

TEST(RedisServer, RestartKeepsDataIfToldAndDurable) {
    redis_server server{{.persistent = true}};
    const int port = server.port();
    const std::string run_id = server.info("server", "run_id");
    server.call({"SET", "k", "v"});
    server.restart(data::keep);
    EXPECT_EQ(server.port(), port);
    EXPECT_NE(server.info("server", "run_id"), run_id);
    EXPECT_EQ(server.call({"GET", "k"}).text, "v");
    server.call({"SET", "k", "after"});
    server.kill();
    server.restart(data::keep);
    EXPECT_EQ(server.call({"GET", "k"}).text, "after") << "kill -9 lost an acknowledged write";
}

TEST(RedisServer, RestartLosesDataIfTold) {
    redis_server durable{{.persistent = true}};
    durable.call({"SET", "k", "v"});
    durable.restart(data::lose);
    EXPECT_TRUE(durable.call({"GET", "k"}).is_nil());
    redis_server plain;
    plain.call({"SET", "k", "v"});
    plain.restart(data::lose);
    EXPECT_TRUE(plain.call({"GET", "k"}).is_nil());
    EXPECT_THROW(plain.restart(data::keep), std::logic_error);
}

TEST(RedisServer, KilledOrStoppedRefusesConnections) {
    redis_server server;
    server.kill();
    EXPECT_FALSE(server.running());
    EXPECT_TRUE(refused(server.port()));
    EXPECT_THROW(server.call({"PING"}), std::runtime_error);
    server.restart(data::lose);
    server.pause();
    server.stop();
    EXPECT_TRUE(refused(server.port()));
}

TEST(RedisServer, PausedAnswersOnlyAfterResume) {
    redis_server server;
    const unique_fd client = connect_tcp(server.port());
    server.pause();
    send_all(client, ping);
    EXPECT_FALSE(readable_within(client, a_while));
    server.resume();
    EXPECT_EQ(receive(client, pong.size()), pong);
}

TEST(RedisServer, CountsCommandsSinceReset) {
    redis_server server;
    server.call({"GET", "k"});
    server.call({"GET", "k"});
    EXPECT_EQ(server.command_calls("get"), 2);
    EXPECT_EQ(server.command_calls("getex"), 0);
    server.reset_stats();
    EXPECT_EQ(server.command_calls("get"), 0);
    EXPECT_EQ(server.command_calls("config|resetstat"), 1);
}

TEST(RedisServer, InfoTellsOneField) {
    redis_server server{{.config = {"maxmemory 3mb"}}};
    EXPECT_EQ(server.info("memory", "maxmemory"), "3145728");
    EXPECT_EQ(server.info("server", "process_id"), std::to_string(server.pid()));
    EXPECT_THROW(server.info("server", "no_such_field"), std::out_of_range);
}

TEST(RedisServer, WantsThePasswordAndPutsItInTheUrl) {
    redis_server server{{.unix_socket = true, .requirepass = "p@ss:\"w/rd"}};
    EXPECT_EQ(server.call({"PING"}).text, "PONG");
    EXPECT_THAT(server.url(), StartsWith("redis://:p%40ss%3A%22w%2Frd@127.0.0.1:"));
    const unique_fd stranger = connect_tcp(server.port());
    send_all(stranger, ping);
    EXPECT_EQ(receive(stranger, 7), "-NOAUTH");
}

TEST(RedisServer, CanBeAskedEvenIfTheDefaultUserIsOff) {
    redis_server server{{.acl_users = {"default off", "bob on >secret ~* &* +get"}}};
    EXPECT_EQ(server.call({"PING"}).text, "PONG");
    const unique_fd bob = connect_tcp(server.port());
    send_all(bob, "AUTH bob secret\r\nSET k v\r\n");
    EXPECT_EQ(receive(bob, 12), "+OK\r\n-NOPERM");
}

TEST(RedisServer, ThatCannotStartTellsItsLog) {
    try {
        redis_server server{{.config = {"no-such-directive yes"}}};
        FAIL() << "started";
    } catch (const std::runtime_error& failure) {
        EXPECT_THAT(failure.what(), HasSubstr("no-such-directive"));
    }
}

TEST(RedisServer, AdminLinkSurvivesBeingKilled) {
    redis_server server;
    const redis_reply id = server.call({"CLIENT", "ID"});
    const unique_fd other = connect_tcp(server.port());
    send_all(other, "CLIENT KILL ID " + std::to_string(id.integer) + "\r\n");
    ASSERT_EQ(receive(other, 4), ":1\r\n");
    EXPECT_NE(server.call({"CLIENT", "ID"}).integer, id.integer);
}

// This program started again with HARNESS_HELPER set: starts a server, tells its pid, and is killed.
class helper_environment : public ::testing::Environment {
public:
    void SetUp() override {
        if (std::getenv("HARNESS_HELPER") == nullptr) return;
        const redis_server server;
        std::cout << "server " << server.pid() << std::endl;
        ::raise(SIGKILL);
    }
};
const auto* const registered = ::testing::AddGlobalTestEnvironment(new helper_environment);

TEST(RedisServer, DiesWithATestThatIsKilled) {
    child_process helper{"/proc/self/exe", {.environment = {{"HARNESS_HELPER", "1"}}}};
    EXPECT_EQ(helper.wait().signal, SIGKILL);
    const std::string told = helper.output();
    const std::size_t at = told.find("server ");
    ASSERT_NE(at, std::string::npos) << told << helper.errors();
    const pid_t server = std::stoi(told.substr(at + 7));
    EXPECT_TRUE(eventually([&] { return !process_is_alive(server); }));
}

}  // namespace
}  // namespace holdfast::testing::harness_test
