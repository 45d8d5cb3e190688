// The hash slot of a key in a Cluster, and sets of slots.
//
// A Cluster divides all keys into 16384 slots, and every slot has one owner. Redis hashes the text between the first
// '{' and the next '}' of a key if it is not empty, otherwise the whole key. Sharded channels are hashed like keys.
#pragma once

#include <bitset>
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

class slot_set {
public:
    slot_set() = default;
    explicit slot_set(hash_slot only) { add(only); }

    static slot_set all() {
        slot_set made;
        made.bits_.set();
        return made;
    }
    // The slots for which `wanted(hash_slot)` is true.
    template <class Predicate>
    static slot_set all_that(Predicate wanted) {
        slot_set found;
        for (std::size_t slot = 0; slot < hash_slots; ++slot) {
            if (wanted(static_cast<hash_slot>(slot))) found.bits_.set(slot);
        }
        return found;
    }

    bool has(hash_slot slot) const noexcept { return bits_[static_cast<std::size_t>(slot)]; }
    void add(hash_slot slot) { bits_.set(static_cast<std::size_t>(slot)); }
    void add(const slot_set& others) { bits_ |= others.bits_; }
    bool empty() const noexcept { return bits_.none(); }

private:
    std::bitset<hash_slots> bits_;
};

}  // namespace holdfast::redis
