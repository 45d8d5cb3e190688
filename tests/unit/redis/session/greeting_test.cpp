// The first commands on a link, and what the client reads from the answers.
#include "redis/session/greeting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/resp/parsed_reply.hpp"
#include "unit/redis/session/recorded_command.hpp"

namespace holdfast::redis::greeting_test {
namespace {

using namespace std::chrono_literals;
using testing::bulk;
using testing::encoded;
using testing::parsed;

TEST(Greeting, HelloHasOnlyWhatIsKnown) {
    EXPECT_EQ(greeting::hello({}), encoded({"HELLO", "3"}));
    EXPECT_EQ(greeting::hello(parse_url("redis://:pw@h")), encoded({"HELLO", "3", "AUTH", "default", "pw"}));
    EXPECT_EQ(greeting::hello(parse_url("redis://bob:pw@h?client_name=me")),
              encoded({"HELLO", "3", "AUTH", "bob", "pw", "SETNAME", "me"}));
    EXPECT_EQ(greeting::hello(parse_url("redis://bob:@h")), encoded({"HELLO", "3", "AUTH", "bob", ""}))
        << "a user may have no password";
}

TEST(Greeting, SecretsGoAsTheyAreWhateverTheirBytes) {
    const std::string odd("a\r\n$3\0b", 7);
    server_settings settings;
    settings.password = secret(odd);
    EXPECT_EQ(greeting::hello(settings), encoded({"HELLO", "3", "AUTH", "default", odd}));
}

TEST(Greeting, ReadsWhatTheServerIs) {
    const parsed hello("%5\r\n" + bulk("server") + bulk("redis") + bulk("version") + bulk("7.2.4") + bulk("id") +
                       ":12345678901\r\n" + bulk("mode") + bulk("cluster") + bulk("role") + bulk("master"));
    server_settings settings;
    settings.use = link_use::cluster;
    server_facts facts;
    EXPECT_EQ(greeting::read_hello(hello.reply, settings, facts).has_value(), false);
    EXPECT_EQ(facts.version, "7.2.4");
    EXPECT_EQ(facts.mode, "cluster");
    EXPECT_EQ(facts.role, "master");
    EXPECT_EQ(facts.client_id, 12345678901);
}

errc verdict_on_version(const std::string& version) {
    const parsed hello("%1\r\n" + bulk("version") + bulk(version));
    server_facts facts;
    const auto why = greeting::read_hello(hello.reply, {}, facts);
    return why ? why->code : errc{};
}

TEST(Greeting, VersionsBefore62AreTooOld) {
    for (const char* good : {"6.2", "6.2.0", "6.10.1", "7.0.15", "10.0", "255.255.255"}) {
        EXPECT_EQ(verdict_on_version(good), errc{}) << good;
    }
    for (const char* old : {"6.0.16", "6.1.240", "5.0.7", "2.8", "6", "", "x.y", "."}) {
        EXPECT_EQ(verdict_on_version(old), errc::too_old) << old;
    }
}

TEST(Greeting, AServerWithoutAtomicScriptsIsRefusedByEitherMark) {
    server_facts facts;
    const parsed hello("%2\r\n" + bulk("version") + bulk("7.4.3") + bulk("garnet_version") + bulk("1.0.50"));
    const auto by_hello = greeting::read_hello(hello.reply, {}, facts);
    ASSERT_TRUE(by_hello);
    EXPECT_EQ(by_hello->code, errc::unsupported);
    const parsed info(bulk("# Server\r\ngarnet_version:1.0.50\r\n"));
    const auto by_info = greeting::read_server_info(info.reply, {}, facts);
    ASSERT_TRUE(by_info);
    EXPECT_EQ(by_info->code, errc::unsupported);
}

TEST(Greeting, AnOddHelloDoesNoHarm) {
    for (const std::string& odd : {std::string("%0\r\n"), "%1\r\n" + bulk("version") + "*1\r\n:1\r\n",
                                   std::string("%1\r\n*0\r\n*0\r\n"), std::string("_\r\n"), std::string(":3\r\n")}) {
        const parsed hello(odd);
        server_facts facts;
        const auto why = greeting::read_hello(hello.reply, {}, facts);
        ASSERT_TRUE(why) << odd;
        EXPECT_EQ(why->code, errc::too_old) << odd;
    }
}

TEST(Greeting, ReadsItsOwnAddressAndNotAnothersField) {
    server_facts facts;
    const parsed info(bulk("id=3 laddr=10.0.0.1:6379 addr=[::1]:55 name=addr=evil\n"));
    greeting::read_client_info(info.reply, {}, facts);
    EXPECT_EQ(facts.client_address, "[::1]:55");
    const parsed verbatim("=" + std::to_string(4 + 20) + "\r\ntxt:# S\r\nrun_id:abc\r\nx:1\r\n");
    greeting::read_server_info(verbatim.reply, {}, facts);
    EXPECT_EQ(facts.run_id, "abc");
}

std::optional<std::chrono::milliseconds> least_uptime_told_by(const std::string& line) {
    server_facts facts;
    const parsed info(bulk("# Server\r\nrun_id:abc\r\n" + line + "x:1\r\n"));
    greeting::read_server_info(info.reply, {}, facts);
    return facts.up_at_least;
}

// The server subtracts two wall clock readings, each truncated to seconds. The first may also be late by a tick.
TEST(Greeting, AnUptimeIsAsLongAsItIsAtLeast) {
    EXPECT_EQ(least_uptime_told_by("uptime_in_seconds:61\r\n"), 59990ms);
    EXPECT_EQ(least_uptime_told_by("uptime_in_seconds:2\r\n"), 990ms);
    EXPECT_EQ(least_uptime_told_by("uptime_in_seconds:1\r\n"), 0ms) << "it may have been started a moment ago";
    EXPECT_EQ(least_uptime_told_by("uptime_in_seconds:0\r\n"), 0ms);
    EXPECT_EQ(least_uptime_told_by("uptime_in_seconds:-3600\r\n"), 0ms)
        << "its clock was set back since it was started";
    EXPECT_EQ(least_uptime_told_by(""), std::nullopt);
    EXPECT_EQ(least_uptime_told_by("uptime_in_seconds:soon\r\n"), std::nullopt);
}

TEST(Greeting, AnotherRunOrASilentOneIsKnownForNoTime) {
    server_facts facts;
    facts.run_id = "abc";
    EXPECT_EQ(known_for(facts, ""), 0ms) << "it does not say how long it has been up";
    facts.up_at_least = 5000ms;
    EXPECT_EQ(known_for(facts, ""), 5000ms);
    EXPECT_EQ(known_for(facts, "abc"), 5000ms);
    EXPECT_EQ(known_for(facts, "xyz"), 0ms);
}

TEST(Greeting, RefusedFactsStayUnknown) {
    server_facts facts;
    const parsed refused("-NOPERM addr=1 run_id:1\r\n");
    greeting::read_client_info(refused.reply, {}, facts);
    greeting::read_server_info(refused.reply, {}, facts);
    EXPECT_EQ(facts.client_address, "");
    EXPECT_EQ(facts.run_id, "");
}

TEST(Greeting, ThePreviousLinkIsNamedByIdAndAddress) {
    const server_facts before{"7.0.0", "master", "standalone", "r", 5, "h:1"};
    const server_facts after{"7.0.0", "master", "standalone", "r", 6, "h:2"};
    EXPECT_EQ(greeting::kill_previous(before, after), encoded({"CLIENT", "KILL", "ID", "5", "ADDR", "h:1"}));
    EXPECT_EQ(greeting::kill_previous({}, after), "");
    EXPECT_EQ(greeting::kill_previous(before, before), "") << "never itself";
    EXPECT_EQ(greeting::kill_previous(before, {"7.0.0", "master", "standalone", "s", 6, "h:2"}), "");
}

}  // namespace
}  // namespace holdfast::redis::greeting_test
