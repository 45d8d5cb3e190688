// The hash slot of a key in a Cluster.
//
// A Cluster divides all keys into 16384 slots, and every slot has one owner. Redis hashes the text between the first
// '{' and the next '}' of a key if it is not empty, otherwise the whole key. Sharded channels are hashed like keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::redis {

// The part of a key that Redis hashes.
std::string_view hash_tag(std::string_view key) noexcept;

// A type of its own, so that it is not confused with a port or an index.
enum class hash_slot : std::uint16_t {};

inline constexpr std::size_t hash_slots = 16384;

hash_slot slot_of(std::string_view key) noexcept;

}  // namespace holdfast::redis
