// Where in a Cluster a key lives: its hash slot.
//
// A Cluster divides all keys into 16384 slots, and every slot has one owner. Redis hashes what is between the first
// '{' and the next '}' of a key if that is not empty, else the whole key; sharded channels are hashed like keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::redis {

// The part of a key that Redis hashes.
std::string_view hash_tag(std::string_view key) noexcept;

// Its own type, so that it is never taken for a port, or for the index of anything else.
enum class hash_slot : std::uint16_t {};

inline constexpr std::size_t hash_slots = 16384;

hash_slot slot_of(std::string_view key) noexcept;

}  // namespace holdfast::redis
