// Hold ids have one form, never repeat, and cannot be guessed.
#include "wire/hold_id.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace holdfast::wire::hold_id_test {
namespace {

using ::testing::MatchesRegex;

class seeded final : public random_source {
public:
    explicit seeded(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t next() override { return engine_(); }

private:
    std::mt19937_64 engine_;
};

TEST(HoldId, HasTheFormThatToolsRead) {
    seeded random(1);
    const client_id client(random);
    EXPECT_THAT(client.text(), MatchesRegex("hf_[-_0-9A-Za-z]{16}"));
    const std::string id = hold_id(42, random).text(client);
    EXPECT_THAT(id, MatchesRegex("hf_[-_0-9A-Za-z]{16}[.]42[.][-_0-9A-Za-z]{22}"));
    EXPECT_TRUE(is_ours(id));
    EXPECT_EQ(wire::client_of(id), client.text());
}

TEST(HoldId, IsNeverUsedTwice) {
    seeded random(2);
    const client_id client(random);
    std::set<std::string> seen;
    for (std::uint64_t i = 0; i < 5000; ++i) seen.insert(hold_id(i % 3, random).text(client));
    EXPECT_EQ(seen.size(), 5000U) << "even when the counter repeats";
}

// R01: at least 122 random bits. Every place of the random part takes all of its 64 values.
TEST(HoldId, EveryPlaceOfItsRandomPartIsRandom) {
    seeded random(3);
    const client_id client(random);
    std::map<std::size_t, std::set<char>> values;
    for (int i = 0; i < 3000; ++i) {
        const std::string id = hold_id(0, random).text(client);
        for (std::size_t place = 1; place <= 22; ++place) values[place].insert(id[id.size() - place]);
    }
    std::size_t bits = 0;
    for (const auto& [place, seen] : values) {
        EXPECT_EQ(seen.size(), 64U) << place;
        bits += 6;
    }
    EXPECT_GE(bits, 122U);
}

TEST(HoldId, ForeignIdsAreToldApart) {
    seeded random(4);
    const std::string ours = hold_id(7, random).text(client_id(random));
    for (const std::string& foreign :
         {std::string(), std::string("hf_"), ours.substr(1), ours + "x", ours.substr(0, ours.size() - 1),
          std::string("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), "xx_" + ours.substr(3),
          ours.substr(0, 19) + ":" + ours.substr(20), std::string(64, '.'), std::string(44, 'a'),
          ours.substr(0, ours.size() - 1) + " "}) {
        EXPECT_FALSE(is_ours(foreign)) << foreign;
        EXPECT_EQ(wire::client_of(foreign), "");
    }
}

TEST(HoldId, TheCounterIsANumber) {
    seeded random(5);
    std::string odd = hold_id(7, random).text(client_id(random));
    odd[20] = 'x';
    EXPECT_FALSE(is_ours(odd)) << odd;
}

// R50: deployed clients accept a marked id, because they only look for digits.
TEST(HoldId, LeadingZerosAreTheMarkOfAHoldThatCanBeAskedBack) {
    seeded random(6);
    const client_id client(random);
    const hold_id id(42, random);
    EXPECT_THAT(id.text(client, mark::common_channel), MatchesRegex(".{19}[.]042[.].{22}"));
    EXPECT_THAT(id.text(client, mark::sharded_channel), MatchesRegex(".{19}[.]0042[.].{22}"));
    for (const mark one : {mark::none, mark::common_channel, mark::sharded_channel}) {
        const std::string text = id.text(client, one);
        EXPECT_EQ(mark_of(text), one);
        EXPECT_TRUE(is_ours(text));
        EXPECT_EQ(client_of(text), client.text());
        EXPECT_EQ(counter_of(text), 42U);
    }
    EXPECT_EQ(hold_id(~std::uint64_t{0}, random).text(client, mark::sharded_channel).size(), 65U) << "the longest";
}

TEST(HoldId, NothingElseIsMarked) {
    seeded random(7);
    const client_id client(random);
    const std::string zero = hold_id(0, random).text(client);
    EXPECT_EQ(mark_of(zero), mark::none) << zero;
    EXPECT_EQ(mark_of(hold_id(100, random).text(client)), mark::none);
    EXPECT_EQ(mark_of("someone.01.else"), mark::none);
    EXPECT_EQ(mark_of(""), mark::none);
}

}  // namespace
}  // namespace holdfast::wire::hold_id_test
