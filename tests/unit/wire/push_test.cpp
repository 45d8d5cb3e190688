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

TEST(Push, EndsWhereItMakesNoSense) {
    for (const char* const text : {"", "grant", "grant ", "grant a", "grant a x", "grant a 1x", "grant a -1",
                                   "greet a 1", "revoked a", "poll", "grant a 99999999999999999999"}) {
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

}  // namespace
}  // namespace holdfast::wire::push_test
