// Several mutexes of one server in one script call, which answers for each of them as the script of one lock would.
//
// Only for locks whose keys may be on one server in any slot: not in a Cluster.
#pragma once

#include "wire/requests.hpp"

#include <span>

namespace holdfast::wire {

// More would make the scripts long.
inline constexpr std::size_t most_together = 8;

struct acquire_part {
    const lock_keys& keys;
    std::string_view id;
    milliseconds lease;
    std::uint64_t token_floor = 0;
};

struct release_part {
    const lock_keys& keys;
    std::string_view id;
    std::uint64_t token;
};

// From two parts to most_together, of different locks. All are acquired, or all are refused.
void write_acquire_all(redis::command& out, milliseconds fence_retention, std::span<const acquire_part> parts);
// A part without an answer was not released: it needs a call of its own.
void write_release_all(redis::command& out, std::span<const release_part> parts);

}  // namespace holdfast::wire
