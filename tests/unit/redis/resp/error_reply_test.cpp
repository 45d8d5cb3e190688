// Error replies: each kind has its own code, and unprintable bytes are replaced.
#include "redis/resp/error_reply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::redis::error_reply_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct known {
    const char* text;
    errc code;
};

TEST(ErrorReply, EveryKindHasItsOwnCode) {
    for (const known& each : std::initializer_list<known>{
             {"WRONGPASS invalid username-password pair", errc::wrong_password},
             {"NOAUTH Authentication required.", errc::auth_required},
             {"NOPERM this user has no permissions", errc::no_permission},
             {"DENIED Redis is running in protected mode", errc::no_permission},
             {"WRONGTYPE Operation against a key", errc::wrong_type},
             {"OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory},
             {"READONLY You can't write against a read only replica.", errc::read_only},
             {"MASTERDOWN Link with MASTER is down", errc::read_only},
             {"LOADING Redis is loading the dataset in memory", errc::loading},
             {"BUSY Redis is busy running a script.", errc::busy_script},
             {"MISCONF Redis is configured to save RDB snapshots", errc::misconfigured},
             {"NOREPLICAS Not enough good replicas to write.", errc::misconfigured},
             {"NOPROTO unsupported protocol version", errc::too_old},
             {"MOVED 16287 127.0.0.1:17003", errc::moving},
             {"ASK 16287 127.0.0.1:17003", errc::moving},
             {"TRYAGAIN Multiple keys request during rehashing of slot", errc::moving},
             {"CLUSTERDOWN The cluster is down", errc::cluster_down},
             {"ERR something else", errc::server_error},
             {"", errc::server_error},
             {"OOM", errc::out_of_memory},
             {"OOMPH is no code", errc::server_error},
             {"ERR the OOM killer", errc::server_error},
         }) {
        EXPECT_EQ(classify_error(each.text, "s").code, each.code) << each.text;
    }
}

// Redis 6.2 wraps the error of a command inside a script.
TEST(ErrorReply, FindsTheCodeInsideOfAScriptError) {
    const std::string wrapped = "ERR Error running script (call to f_0123): @user_script:3: ";
    EXPECT_EQ(classify_error(wrapped + "-OOM command not allowed", "s").code, errc::out_of_memory);
    EXPECT_EQ(classify_error(wrapped + "@user_script: 3: -READONLY You can't write", "s").code, errc::read_only);
    EXPECT_EQ(classify_error(wrapped + "WRONGTYPE Operation against", "s").code, errc::wrong_type);
    EXPECT_EQ(classify_error(wrapped + "attempt to index a nil value", "s").code, errc::server_error);
}

// The texts of Redis 6.2, Redis 7.0, then Redis 8.0 and Valkey 8.1. The last rows are possible wordings of other
// servers.
TEST(ErrorReply, ARightLackingInsideOfAScriptIsAMissingRight) {
    for (const char* text :
         {"ERR Error running script (call to f_0123): @user_script:1: @user_script: 1: The user executing the script "
          "can't run this command or subcommand",
          "ERR The user executing the script can't run this command or subcommand script: 0123, on @user_script:1.",
          "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments "
          "script: 0123, on @user_script:1.",
          "ERR The user executing the script can't publish to the channel mentioned in the command script: 0123, on "
          "@user_script:1.",
          "ERR ACL failure in script: User locks has no permissions to run the 'set' command script: 0123, on "
          "@user_script:12.",
          "ERR ACL failure in script: User locks has no permissions to run the 'pubsub|numsub' command",
          "ERR ACL failure in script: No permissions to access a key script: 0123, on @user_script:1.",
          "ERR ACL failure in script: No permissions to access a channel script: 0123, on @user_script:1.",
          "NOPERM ACL failure in script: No permissions to access a key", "ERR script failed: acl denies 'set'",
          "ERR this user has no permission for the key 'a'"}) {
        const failure why = classify_error(text, "s");
        EXPECT_EQ(why.code, errc::no_permission) << text;
        EXPECT_EQ(why.detail, std::string("s: ") + text);
    }
}

// Errors of other kinds quote names of locks and users, too.
TEST(ErrorReply, WordsOfOthersMakeNoMissingRight) {
    for (const char* text : {"ERR unknown command 'acl', with args beginning with: 'no permissions' ",
                             "ERR unknown command `x`, with args beginning with: `acl failure` "}) {
        EXPECT_EQ(classify_error(text, "s").code, errc::unsupported) << text;
    }
    for (const char* text : {"ERR holdfast: no permission to invent codes", "ERR oracle failure", "ERR miracl failure",
                             "ERR Protocol error: \"ACL failure\""}) {
        EXPECT_EQ(classify_error(text, "s").code, errc::server_error) << text;
    }
    EXPECT_EQ(classify_error("WRONGTYPE of a key without permissions", "s").code, errc::wrong_type);
}

// The texts of Redis 6.2, 7.0 and 8.0, Valkey 8.1 and Garnet.
TEST(ErrorReply, WhatTheServerLacksIsToldWithWhatToDo) {
    for (const char* text : {"ERR unknown command 'EVALSHA', with args beginning with: '0123' '4' 'hf:{stock}' ",
                             "ERR unknown command `EVAL`, with args beginning with: `return 1` ",
                             "ERR This instance has Lua scripting support disabled"}) {
        const failure why = classify_error(text, "s");
        EXPECT_EQ(why.code, errc::unsupported) << text;
        EXPECT_THAT(why.detail, HasSubstr("allow EVAL and EVALSHA"));
    }
    for (const char* text :
         {"ERR Unknown Redis command called from script script: 0123, on @user_script:5.",
          "ERR Unknown command called from script script: 0123, on @user_script:5.",
          "ERR Error running script (call to f_01): @user_script:2: @user_script: 2: Unknown Redis command called from "
          "Lua script"}) {
        const failure why = classify_error(text, "s");
        EXPECT_EQ(why.code, errc::unsupported) << text;
        EXPECT_THAT(why.detail, HasSubstr("holdfast doctor names it"));
    }
    EXPECT_THAT(classify_error("ERR unknown command 'GET', with args beginning with: 'evalsha' ", "s").detail,
                HasSubstr("locks need this command"));
}

TEST(ErrorReply, QuotesTheServerButOnlyWhatIsFitToShow) {
    EXPECT_EQ(classify_error("ERR no", "redis://h").detail, "redis://h: ERR no");
    EXPECT_EQ(classify_error("ERR \x1b[2J\n\x7f", "s").detail, "s: ERR ?[2J??");
    const std::string longer = classify_error("ERR " + std::string(5000, 'x'), "s").detail;
    EXPECT_LT(longer.size(), 400U);
    EXPECT_THAT(longer, HasSubstr("..."));
}

TEST(ErrorReply, WhatMayPassIsNotPermanent) {
    for (const errc passing : {errc::loading, errc::busy_script, errc::read_only, errc::unreachable,
                               errc::connection_refused, errc::host_not_found, errc::request_timed_out,
                               errc::out_of_memory, errc::misconfigured, errc::moving, errc::cluster_down}) {
        EXPECT_FALSE(is_permanent(passing)) << static_cast<int>(passing);
    }
    for (const errc lasting :
         {errc::wrong_password, errc::auth_required, errc::certificate_untrusted, errc::certificate_mismatch,
          errc::certificate_expired, errc::too_old, errc::protocol_error, errc::bad_topology}) {
        EXPECT_TRUE(is_permanent(lasting)) << static_cast<int>(lasting);
    }
}

TEST(ErrorReply, ALinkToAReplicaOrWithoutLoginIsOfNoUse) {
    EXPECT_TRUE(spoils_link(errc::read_only));
    EXPECT_TRUE(spoils_link(errc::auth_required));
    EXPECT_FALSE(spoils_link(errc::out_of_memory));
    EXPECT_FALSE(spoils_link(errc::no_permission));
}

}  // namespace
}  // namespace holdfast::redis::error_reply_test
