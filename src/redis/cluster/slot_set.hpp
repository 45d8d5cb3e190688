// A set of hash slots.
#pragma once

#include "redis/cluster/hash_slot.hpp"

#include <bitset>

namespace holdfast::redis {

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
