// Names and keys: all keys of a lock in one slot, or the name is refused.
#include "wire/keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/errors.hpp>

#include <random>
#include <string>
#include <vector>

namespace holdfast::wire::keys_test {
namespace {

lock_keys tagged(const std::string& name, std::string_view prefix = "hf:") {
    return make_keys(lock_name(name), key_naming::tagged, prefix);
}
lock_keys raw(const std::string& name) {
    return make_keys(lock_name(name), key_naming::raw, "hf:");
}

template <typename Make>
errc refusal_of(Make make) {
    try {
        make();
        return errc{};
    } catch (const error& refused) {
        return refused.condition();
    }
}

TEST(Names, TaggedKeysStandUnderThePrefixWithTheNameAsTag) {
    const lock_keys keys = tagged("stock:1001");
    EXPECT_EQ(keys.lock(), "hf:{stock:1001}");
    EXPECT_EQ(keys.queue(), "hf:{stock:1001}:queue");
    EXPECT_EQ(keys.waiters(), "hf:{stock:1001}:waiters");
    EXPECT_EQ(keys.fence(), "hf:{stock:1001}:fence");
    EXPECT_EQ(tagged("a", "").lock(), "{a}");
}

TEST(Names, RawKeysAreTheNameAndSideKeysInItsSlot) {
    const lock_keys keys = raw("stock:1001");
    EXPECT_EQ(keys.lock(), "stock:1001");
    EXPECT_EQ(keys.queue(), "{stock:1001}:queue");
    EXPECT_EQ(keys.fence(), "{stock:1001}:fence");
}

TEST(Names, ARawNameKeepsTheTagItHas) {
    const lock_keys keys = raw("stock:{1001}:lock");
    EXPECT_EQ(keys.lock(), "stock:{1001}:lock");
    EXPECT_EQ(keys.queue(), "stock:{1001}:lock:queue");
    EXPECT_EQ(hash_tag(keys.waiters()), "1001");
}

TEST(Names, EmptyAndHugeOnesAreRefused) {
    EXPECT_EQ(refusal_of([] { tagged(""); }), errc::bad_name);
    EXPECT_EQ(refusal_of([] { raw(""); }), errc::bad_name);
    EXPECT_EQ(refusal_of([] { tagged(std::string(1025, 'x')); }), errc::bad_name);
    EXPECT_EQ(refusal_of([] { tagged(std::string(1024, 'x')); }), errc{});
}

TEST(Names, StrayBracesThatMoveTheTagAreRefused) {
    for (const char* stray : {"a}b", "}", "{}", "foo{}", "a}b{c"}) {
        EXPECT_EQ(refusal_of([&] { raw(stray); }), errc::bad_name) << stray;
    }
    EXPECT_EQ(refusal_of([&] { tagged("}"); }), errc::bad_name);
}

TEST(Names, AClientsChannelForALockHasTheTagOfTheLock) {
    EXPECT_EQ(channel_of(tagged("stock:1001"), "hf_c"), "hf:wake:{stock:1001}:hf_c");
    EXPECT_EQ(channel_of(raw("stock:1001"), "hf_c"), "hf:wake:{stock:1001}:hf_c");
    EXPECT_EQ(channel_of(raw("stock:{1001}:lock"), "hf_c"), "hf:wake:{1001}:hf_c");
}

// Whatever is not refused is in one slot, and two names never share a key.
TEST(Names, EveryNameIsRefusedOrInOneSlot) {
    std::mt19937_64 random(7);
    constexpr std::string_view letters = "a{}:b";
    int accepted = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string name;
        for (auto length = random() % 9; length > 0; --length) name += letters[random() % letters.size()];
        for (const key_naming naming : {key_naming::tagged, key_naming::raw}) {
            try {
                const lock_keys keys = make_keys(lock_name(name), naming, "hf:");
                ++accepted;
                ASSERT_EQ(hash_tag(channel_of(keys, "client")), hash_tag(keys.lock())) << name;
                for (const std::string& side : {keys.queue(), keys.waiters(), keys.fence()}) {
                    ASSERT_EQ(hash_tag(side), hash_tag(keys.lock())) << name;
                    ASSERT_NE(side, keys.lock());
                }
            } catch (const error& refused) {
                ASSERT_EQ(refused.condition(), errc::bad_name) << name;
            }
        }
    }
    EXPECT_GT(accepted, 1000);
}

std::vector<std::string> owners(std::string_view key) {
    std::vector<std::string> result;
    for (const key_owner& one : owners_of(key, "hf:")) {
        result.push_back((one.naming == key_naming::raw ? "raw " : "tagged ") + std::string(one.name));
    }
    return result;
}

TEST(Keys, TellTheLocksThatTheyMayBelongTo) {
    using ::testing::ElementsAre;
    using ::testing::IsEmpty;
    EXPECT_THAT(owners("hf:{stock}"), ElementsAre("tagged stock"));
    EXPECT_THAT(owners("hf:{stock}:grants"), ElementsAre("tagged stock"));
    EXPECT_THAT(owners("{stock}:queue"), ElementsAre("raw {stock}", "raw stock"));
    EXPECT_THAT(owners("a{stock}b:fence"), ElementsAre("raw a{stock}b"));
    for (const char* const other : {"hf:{}", "hf:{}:queue", "stock", "stock:queue", "{stock}:gap", "{stock}:other"}) {
        EXPECT_THAT(owners(other), IsEmpty()) << other;
    }
}

TEST(Channels, OfAClientHaveItsIdInTheirNames) {
    EXPECT_EQ(channel_of("hf_c"), "hf:wake:hf_c");
    EXPECT_EQ(ack_channel_of("hf_c"), "hf:ack:hf_c");
    EXPECT_EQ(card_key_of("hf_c"), "hf:client:hf_c");
}

}  // namespace
}  // namespace holdfast::wire::keys_test
