// The meaning of refusals by members of a Cluster.
#include "redis/slots/redirect.hpp"

#include <gtest/gtest.h>

namespace holdfast::redis::redirect_test {
namespace {

using kind = redirect::kind;

const server_address asked{"seed", 7000};

std::optional<redirect> read(std::string_view text) {
    return read_redirect(text, asked);
}

void expect_target(std::string_view text, kind what, const server_address& to) {
    const auto meant = read(text);
    ASSERT_TRUE(meant) << text;
    EXPECT_EQ(meant->what, what) << text;
    EXPECT_EQ(static_cast<unsigned>(meant->slot), 16287U) << text;
    EXPECT_EQ(meant->to, to) << text;
}

TEST(Redirect, MovedAndAskNameASlotAndAnAddress) {
    expect_target("MOVED 16287 127.0.0.1:17003", kind::moved, {"127.0.0.1", 17003});
    expect_target("ASK 16287 db.example:1", kind::ask, {"db.example", 1});
    expect_target("MOVED 16287 2001:db8::1:6379", kind::moved, {"2001:db8::1", 6379});
    expect_target("ASK 16287 :6379", kind::ask, {"seed", 6379});
}

TEST(Redirect, AnAddressWithAnUnknownNameMeansDown) {
    EXPECT_EQ(read("MOVED 16287 ?:6379")->what, kind::down);
}

// The texts of a Redis 7.0.15.
TEST(Redirect, EveryOtherRefusalOfAClusterIsKnown) {
    EXPECT_EQ(read("TRYAGAIN Multiple keys request during rehashing of slot")->what, kind::try_again);
    EXPECT_EQ(read("CLUSTERDOWN The cluster is down")->what, kind::down);
    EXPECT_EQ(read("CLUSTERDOWN Hash slot not served")->what, kind::down);
    EXPECT_EQ(read("READONLY You can't write against a read only replica.")->what, kind::spoiled_link);
    EXPECT_EQ(read("MASTERDOWN Link with MASTER is down")->what, kind::spoiled_link);
    EXPECT_EQ(read("NOAUTH Authentication required.")->what, kind::spoiled_link);
    EXPECT_EQ(
        read("ERR Script attempted to access a non local key in a cluster node script: 1234, on @user_script:188.")
            ->what,
        kind::half_run);
    EXPECT_EQ(read("ERR Script attempted to access keys that do not hash to the same slot")->what, kind::half_run);
    EXPECT_EQ(read("ERR Unable to execute command 'exists' in script because undeclared keys were accessed during "
                   "rehashing of the slot script: 1234, on @user_script:1.")
                  ->what,
              kind::half_run);
}

// With cluster-allow-reads-when-down scripts begin, but all their writes are refused.
TEST(Redirect, AScriptThatAClusterStopsBecauseItIsDownHasChangedNothing) {
    for (const char* text :
         {"ERR Script attempted to execute a write command while the cluster is down and readonly script: 1, on @x:1.",
          "ERR Script attempted to execute a command while the cluster is down script: 1, on @x:1.",
          "ERR Script attempted to access a slot not served script: 1, on @x:1."}) {
        ASSERT_TRUE(read(text)) << text;
        EXPECT_EQ(read(text)->what, kind::down) << text;
    }
}

TEST(Redirect, OtherErrorsAreForTheOwnerOfTheCommand) {
    for (const char* text :
         {"", "ERR no", "NOSCRIPT No matching script.", "OOM command not allowed", "NOPERM no", "LOADING x",
          "CROSSSLOT Keys in request don't hash to the same slot", "ERR MOVED 1 a:1", "ERR Error running script"}) {
        EXPECT_FALSE(read(text)) << text;
    }
}

TEST(Redirect, ATargetThatMakesNoSenseIsNotFollowed) {
    for (const char* text : {"MOVED 16384 a:1", "MOVED -1 a:1", "MOVED x a:1", "MOVED 1", "MOVED 1 a",
                             "MOVED 1 a:", "MOVED 1 a:0", "MOVED 1 a:65536", "MOVED 1 a:x", "MOVED  a:1", "ASK a:1 2",
                             "ASK :1", "MOVED 1 a b:1", "MOVED 1 a\x1b[2J:1"}) {
        EXPECT_FALSE(read(text)) << text;
    }
}

}  // namespace
}  // namespace holdfast::redis::redirect_test
