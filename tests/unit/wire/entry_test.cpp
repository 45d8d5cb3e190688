// The texts that scripts store in a lock's keys.
#include "wire/entry.hpp"

#include <gtest/gtest.h>

namespace holdfast::wire::entry_test {
namespace {

using namespace std::chrono_literals;

TEST(Entry, OfAWaiterTellsWishAndLastPoll) {
    const waiter_entry entry = read_entry("30000 1000 1800000000000000 0 r hf:wake:x");
    EXPECT_EQ(entry.wants, wish::read);
    EXPECT_EQ(entry.poll_interval, 1s);
    EXPECT_EQ(entry.last_poll, 1'800'000'000s);
    EXPECT_FALSE(entry.is_silent_at(1'800'000'002s));
    EXPECT_TRUE(entry.is_silent_at(1'800'000'002s + 1us));
}

TEST(Entry, ThatMakesNoSenseTellsNothing) {
    for (const char* const text : {"", "x", "30000 1000 18 0 r", "30000 1000 18 0 r "}) {
        EXPECT_EQ(read_entry(text).wants, std::nullopt) << text;
        EXPECT_FALSE(read_entry(text).is_silent_at(1h)) << text;
    }
    const waiter_entry odd = read_entry("30000 x y 0 z c");
    EXPECT_EQ(odd.wants, std::nullopt);
    EXPECT_EQ(odd.last_poll, std::nullopt);
}

TEST(Entry, ScoreOfAnUpgradeIsInFront) {
    EXPECT_EQ(read_score("1800000000000000").ticket, 1'800'000'000s);
    EXPECT_FALSE(read_score("1800000000000000").is_upgrade);
    EXPECT_EQ(read_score("-7207199254740992").ticket, 1'800'000'000s);
    EXPECT_TRUE(read_score("-7207199254740992").is_upgrade);
}

TEST(Entry, GrantTellsItsToken) {
    EXPECT_EQ(token_of_grant("r 42"), 42U);
    EXPECT_EQ(token_of_grant("b 42 lost"), 42U);
    for (const char* const text : {"", "r", "r ", "r x", "r 0", "r 9007199254740992"}) {
        EXPECT_EQ(token_of_grant(text), std::nullopt) << text;
    }
}

TEST(Entry, WordsOfShapesAreReadBack) {
    for (const shape one : {shape::reading, shape::writing, shape::both}) EXPECT_EQ(shape_of(word_of(one)), one);
    EXPECT_EQ(shape_of(""), std::nullopt);
    EXPECT_EQ(shape_of("x"), std::nullopt);
}

}  // namespace
}  // namespace holdfast::wire::entry_test
