// Sleeping on a word of memory: what a condition variable does, without a mutex to take again after waking.
//
// The one who wakes needs the word's address only and never looks at it, so the word may be gone by then: whoever
// sleeps at that address next wakes for no reason, which everybody who sleeps on a futex must bear anyway.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast {

using futex_word = std::atomic<std::uint32_t>;

// Sleeps if the word is `value`, until somebody wakes it. May return for no reason.
void futex_wait(futex_word& word, std::uint32_t value) noexcept;
void futex_wake_one(const futex_word* address) noexcept;

}  // namespace holdfast
