// Sleeping on a word of memory: like a condition variable, without a mutex to lock again after waking.
//
// A waker uses only the address of the word and never reads it, so the word may be freed already. Then the next thread
// that sleeps at that address may wake up spuriously, which every user of a futex must expect.
#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast {

using futex_word = std::atomic<std::uint32_t>;

// Sleeps if the word is `value`, until another thread wakes it. May return spuriously.
void futex_wait(futex_word& word, std::uint32_t value) noexcept;
void futex_wake_one(const futex_word* address) noexcept;

}  // namespace holdfast
