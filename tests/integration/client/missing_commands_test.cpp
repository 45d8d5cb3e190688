// Servers that lack what locks need: each error says what to do. Where locks can do without, they do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <thread>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/fake_server.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::missing_commands_test {
namespace {

using namespace std::chrono_literals;

std::string without(const std::string& command) {
    return "rename-command " + command + " \"\"";
}

// R58
TEST(MissingCommands, WithoutScriptsTheErrorSaysWhatToAllow) {
    for (const char* command : {"EVALSHA", "EVAL"}) {
        redis_server server{{.config = {without(command)}}};
        client subject{server.url()};
        mutex lock{subject, "stock"};
        expect_refusal(errc::unsupported, "allow EVAL and EVALSHA", [&] { lock.try_acquire(); });
        expect_refusal(errc::unsupported, "allow EVAL and EVALSHA", [&] { lock.acquire(); });
    }
}

TEST(MissingCommands, OneThatAScriptNeedsIsADisabledOne) {
    redis_server server{{.config = {without("GET")}}};
    client subject{server.url()};
    mutex lock{subject, "stock"};
    expect_refusal(errc::unsupported, "renamed or disabled", [&] { lock.try_acquire(); });
}

TEST(MissingCommands, WithoutPubsubLocksAreHandedOverAllTheSame) {
    redis_server server{{.config = {without("PUBSUB")}}};
    client subject{server.url()};
    client other{server.url()};
    mutex lock{subject, "stock"};
    mutex theirs{other, "stock"};
    lease held = lock.acquire();
    lease handed;
    std::thread waiting([&] { handed = theirs.acquire(); });
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{stock}:queue"}).integer == 1; }));
    held.release();
    waiting.join();
    EXPECT_TRUE(handed);
}

// Garnet names itself in HELLO, and in INFO.
TEST(MissingCommands, AServerWithoutAtomicScriptsIsRefused) {
    misbehaving_server says_so_in_info{behaviours::after_hello([](fake_connection& link, const command& asked) {
        const std::string text = "# Server\r\ngarnet_version:1.0.50\r\nrun_id:abc\r\n";
        const bool is_info = asked.front() == "INFO";
        link.write(is_info ? "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n" : "-ERR not now\r\n");
    })};
    expect_client_refused(errc::unsupported, says_so_in_info.url(), "not atomic");
}

}  // namespace
}  // namespace holdfast::testing::missing_commands_test
