// In the place of src/base/futex.hpp, for the scheduler.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "threads/scheduler.hpp"

namespace holdfast {

using futex_word = std::atomic<std::uint32_t>;

// By the address, as the system has it: how often somebody was woken there who is not awake yet, and who sleeps.
struct futex_sleepers {
    unsigned asleep = 0;
    unsigned woken = 0;
};
inline std::map<const void*, futex_sleepers>& all_futex_sleepers() {
    static std::map<const void*, futex_sleepers> all;
    return all;
}

inline void futex_wait(futex_word& word, std::uint32_t value) noexcept {
    word.life().check();
    interleaving::step();
    word.life().check();
    if (word.peek() != value) return;
    futex_sleepers& here = all_futex_sleepers()[&word];
    ++here.asleep;
    interleaving::step_when([&here] { return here.woken > 0; });
    --here.woken;
}

inline void futex_wake_one(const futex_word* address) noexcept {
    interleaving::step();
    const auto found = all_futex_sleepers().find(address);
    if (found == all_futex_sleepers().end() || found->second.asleep == 0) return;
    --found->second.asleep;
    ++found->second.woken;
}

}  // namespace holdfast
