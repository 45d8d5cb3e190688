// Sleeping on a word of memory: like a condition variable, without a mutex to lock again after waking.
//
// A waker uses only the address of the word and never reads it, so the word may be freed already. Then the next thread
// that sleeps at that address may wake up spuriously, which every user of a futex must expect.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace holdfast {

using futex_word = std::atomic<std::uint32_t>;
static_assert(sizeof(futex_word) == sizeof(std::uint32_t) && futex_word::is_always_lock_free);

// Sleeps if the word is `value`, until another thread wakes it. May return spuriously.
inline void futex_wait(futex_word& word, std::uint32_t value) noexcept {
    // Errors do not matter: after another value, a signal or a wake-up the caller checks its condition again.
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

inline void futex_wake_one(const futex_word* address) noexcept {
    ::syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace holdfast
