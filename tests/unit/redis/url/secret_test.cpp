// A secret must not be printable, and must leave no copy in memory.
#include "redis/url/secret.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace holdfast::redis::secret_test {
namespace {

template <typename T>
concept printable = requires(std::ostream& out, const T& value) {
    out << value;
};

static_assert(!printable<secret>);
static_assert(!std::is_convertible_v<secret, std::string>);
static_assert(!std::is_convertible_v<secret, std::string_view>);
static_assert(!std::is_convertible_v<std::string, secret>, "made on purpose or not at all");
static_assert(std::is_nothrow_move_constructible_v<secret> && std::is_nothrow_move_assignable_v<secret>);

constexpr const char* short_text = "hunter2";  // fits into std::string itself
constexpr const char* short_tail = "unter2";   // clearing a string overwrites its first byte
constexpr const char* long_text = "a password that is too long for the small buffer of std::string";

bool contains(const unsigned char* memory, std::size_t size, std::string_view text) {
    return std::search(memory, memory + size, text.begin(), text.end()) != memory + size;
}

// Storage for one object whose bytes can be read after its destruction.
template <typename T>
struct storage {
    alignas(T) unsigned char bytes[sizeof(T)] = {};
    bool contains(std::string_view text) const { return secret_test::contains(bytes, sizeof bytes, text); }
};

TEST(Secret, RevealsWhatItWasGiven) {
    EXPECT_EQ(secret("hunter2").reveal(), "hunter2");
    EXPECT_EQ(secret(long_text).reveal(), long_text);
    EXPECT_FALSE(secret("x").empty());
    EXPECT_TRUE(secret().empty());
    EXPECT_EQ(secret().reveal(), "");
}

TEST(Secret, KeepsNulBytes) {
    const std::string text("a\0b", 3);
    EXPECT_EQ(secret(text).reveal(), text);
}

TEST(Secret, CopiesAreEqualAndIndependent) {
    for (const char* text : {short_text, long_text}) {
        secret first(text);
        secret second(first);
        secret third;
        third = first;
        first = secret("other");
        EXPECT_EQ(second.reveal(), text);
        EXPECT_EQ(third.reveal(), text);
        EXPECT_EQ(first.reveal(), "other");
    }
}

TEST(Secret, AssignmentToItselfChangesNothing) {
    for (const char* text : {short_text, long_text}) {
        secret value(text);
        secret& alias = value;
        value = alias;
        EXPECT_EQ(value.reveal(), text);
        value = std::move(alias);
        EXPECT_EQ(value.reveal(), text);
    }
}

TEST(Secret, MovesAwayAndLeavesEmpty) {
    for (const char* text : {short_text, long_text}) {
        secret first(text);
        secret second(std::move(first));
        EXPECT_EQ(second.reveal(), text);
        EXPECT_TRUE(first.empty());  // NOLINT: the rule under test
        secret third("before");
        third = std::move(second);
        EXPECT_EQ(third.reveal(), text);
        EXPECT_TRUE(second.empty());  // NOLINT
    }
}

TEST(Secret, AMovedFromObjectHoldsNoCopyOfAShortText) {
    storage<secret> address;
    auto* moved = new (address.bytes) secret(short_text);
    ASSERT_TRUE(address.contains(short_tail)) << "the test would not see a leak";
    secret target(std::move(*moved));
    EXPECT_FALSE(address.contains(short_tail));
    std::destroy_at(moved);
}

TEST(Secret, ADestroyedObjectHoldsNoCopyOfAShortText) {
    storage<secret> address;
    auto* value = new (address.bytes) secret(short_text);
    ASSERT_TRUE(address.contains(short_tail));
    std::destroy_at(value);
    EXPECT_FALSE(address.contains(short_tail));
}

TEST(Secret, WipeZeroesTheWholeBufferAlsoBeyondTheSize) {
    std::string text(long_text);
    const std::size_t capacity = text.capacity();
    const char* const buffer = text.data();
    text.resize(3);  // the rest of the password is still behind it
    wipe(text);
    EXPECT_TRUE(text.empty());
    ASSERT_EQ(text.data(), buffer) << "still the same memory";
    ASSERT_EQ(text.capacity(), capacity);
    EXPECT_TRUE(std::all_of(buffer, buffer + capacity, [](char c) { return c == '\0'; }));
}

}  // namespace
}  // namespace holdfast::redis::secret_test
