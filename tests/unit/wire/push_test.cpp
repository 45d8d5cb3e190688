// Pushes: what the scripts and the command publish on a wake-up channel.
#include "wire/push.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::wire::push_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> items_of(std::string_view text) {
    std::vector<std::string> result;
    for (push_reader push(text); const auto item = push.next();) {
        result.push_back(std::string(item->id) + "=" + std::to_string(item->token));
    }
    return result;
}

TEST(Push, GrantNamesManyHolds) {
    EXPECT_EQ(push_reader("grant a 1 b 2").kind(), push_kind::grant);
    EXPECT_THAT(items_of("grant a 1 b 2"), ElementsAre("a=1", "b=2"));
}

TEST(Push, OthersNameOneHold) {
    EXPECT_THAT(items_of("poll a"), ElementsAre("a=0"));
    EXPECT_THAT(items_of("poll a b"), ElementsAre("a=0"));
    EXPECT_THAT(items_of("revoked a 7 b 8"), ElementsAre("a=7"));
    EXPECT_THAT(items_of("recall a 0"), ElementsAre("a=0"));
}

TEST(Push, GrantOfABlockTellsTheCeilingAndHowManyWait) {  // R50, R52
    push_reader push("grant_block a 1 7 3 b 9 8 0");
    EXPECT_EQ(push.kind(), push_kind::grant_block);
    const auto first = push.next(), second = push.next();
    EXPECT_EQ(first->id, "a");
    EXPECT_EQ(first->token, 1U);
    EXPECT_EQ(first->ceiling, 7U);
    EXPECT_EQ(first->waiters, 3U);
    EXPECT_EQ(second->id, "b");
    EXPECT_EQ(second->ceiling, 9U) << "never less than the token";
    EXPECT_EQ(push.next(), std::nullopt);
    EXPECT_EQ(push_reader("grant a 5").next()->ceiling, 5U) << "a plain grant is one token";
    EXPECT_EQ(push_text(push_kind::grant_block, {.id = "a", .token = 1, .ceiling = 7, .waiters = 3}),
              "grant_block a 1 7 3");
}

TEST(Push, WantedNamesManyHolds) {  // R50
    EXPECT_EQ(push_reader("wanted a b").kind(), push_kind::wanted);
    EXPECT_THAT(items_of("wanted a b"), ElementsAre("a=0", "b=0"));
    EXPECT_EQ(push_text(push_kind::wanted, {.id = "me"}), "wanted me");
}

TEST(Push, ChangedNamesManyWatchers) {  // R55
    EXPECT_EQ(push_reader("changed a b").kind(), push_kind::changed);
    EXPECT_THAT(items_of("changed a b"), ElementsAre("a=0", "b=0"));
}

TEST(Push, EndsWhereItMakesNoSense) {
    for (const char* const text :
         {"", "grant", "grant ", "grant a", "grant a x", "grant a 1x", "grant a -1", "greet a 1", "revoked a", "poll",
          "wanted", "grant_block a 1 7", "grant_block a 1", "grant a 99999999999999999999"}) {
        EXPECT_THAT(items_of(text), IsEmpty()) << text;
    }
    EXPECT_THAT(items_of("grant a 1 b"), ElementsAre("a=1"));
    EXPECT_EQ(push_reader("greet a 1").kind(), std::nullopt);
}

TEST(Push, IsReadAsItWasWritten) {
    for (const auto kind : {push_kind::grant, push_kind::revoked, push_kind::recall}) {
        const std::string text = push_text(kind, {.id = "me", .token = 42});
        EXPECT_EQ(push_reader(text).kind(), kind);
        EXPECT_THAT(items_of(text), ElementsAre("me=42"));
    }
    EXPECT_EQ(push_text(push_kind::poll, {.id = "me"}), "poll me");
    EXPECT_EQ(push_text(push_kind::revoked, {.id = "me", .token = 7}), "revoked me 7");
}

TEST(Push, ATokenThatNoScriptGrantsEndsTheMessage) {
    for (const char* const text : {"grant a 9007199254740992", "grant a 18446744073709551615",
                                   "grant_block a 5 9007199254740992 0", "revoked a 9007199254740992"}) {
        EXPECT_FALSE(push_reader(text).next()) << text;
    }
    push_reader last("grant a 9007199254740991");
    EXPECT_EQ(last.next()->token, 9007199254740991U);
}

}  // namespace
}  // namespace holdfast::wire::push_test
