// Keys, side keys and channels of one lock have one slot, the same as on a server.
#include "redis/slots/hash_slot.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace holdfast::redis::hash_slot_test {
namespace {

unsigned number(std::string_view key) {
    return static_cast<unsigned>(slot_of(key));
}

TEST(HashSlot, TheTagIsWhatRedisClusterSaysItIs) {
    EXPECT_EQ(hash_tag("plain"), "plain");
    EXPECT_EQ(hash_tag("{user1000}.following"), "user1000");
    EXPECT_EQ(hash_tag("foo{}{bar}"), "foo{}{bar}");
    EXPECT_EQ(hash_tag("foo{{bar}}zap"), "{bar");
    EXPECT_EQ(hash_tag("foo{bar}{zap}"), "bar");
    EXPECT_EQ(hash_tag("foo{bar"), "foo{bar");
    EXPECT_EQ(hash_tag("}{"), "}{");
}

// The first is the check value of the CRC. The others are answers of CLUSTER KEYSLOT of Redis 7.0.15.
TEST(HashSlot, IsWhatAServerAnswers) {
    EXPECT_EQ(number("123456789"), 0x31c3U % hash_slots);
    EXPECT_EQ(number("hf:{x}"), 16287U);
    EXPECT_EQ(number("hf:{x}:queue"), 16287U);
    EXPECT_EQ(number("foo"), 12182U);
    EXPECT_EQ(number("{user1000}.following"), 3443U);
    EXPECT_EQ(number("stock:1001"), 3197U);
    EXPECT_EQ(number(""), 0U);
    EXPECT_EQ(number("a{b"), 13340U);
    EXPECT_EQ(number("{}"), 15257U);
    EXPECT_EQ(number("\xc3\xa9"), 10180U);
    std::string upper_half;
    for (int byte = 128; byte < 256; ++byte) upper_half += static_cast<char>(byte);
    EXPECT_EQ(number(upper_half), 5096U) << "bytes, not letters";
}

// Channels and acknowledgement marks contain the tag of a key in braces.
TEST(HashSlot, WhatHasTheTagOfAKeyInBracesIsWhereTheKeyIs) {
    std::mt19937_64 random(11);
    constexpr std::string_view letters = "a{}:b";
    for (int i = 0; i < 20000; ++i) {
        std::string key;
        for (auto length = 1 + random() % 8; length > 0; --length) key += letters[random() % letters.size()];
        const std::string_view tag = hash_tag(key);
        if (tag.find('}') != std::string_view::npos) continue;  // no lock has such a key
        ASSERT_EQ(number("hf:wake:{" + std::string(tag) + "}:client"), number(key)) << key;
    }
}

}  // namespace
}  // namespace holdfast::redis::hash_slot_test
