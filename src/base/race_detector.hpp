// Tells ThreadSanitizer what a lock means, in programs that are compiled with it.
//
// What one thread did before it released a lock happens before what the next one does after it acquired the lock. The
// way there leads through a server and through this library, which is most often not instrumented: the sanitizer sees
// neither, and would report a race for every variable that the lock protects. In a program without the sanitizer the
// functions do not exist, and nothing is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string_view>

extern "C" {
[[gnu::weak]] void __tsan_acquire(void* where);  // NOLINT(bugprone-reserved-identifier)
[[gnu::weak]] void __tsan_release(void* where);  // NOLINT(bugprone-reserved-identifier)
}

namespace holdfast::race_detector {

// Locks are told apart by their keys, whatever client or object they are used through. Two of them may share a place:
// then the sanitizer takes them for one lock, and never reports a race where there is none.
inline void* place_of(std::string_view key) noexcept {
    static std::uint64_t places[1024];
    return &places[std::hash<std::string_view>()(key) % std::size(places)];
}

inline void on_acquired(std::string_view key) noexcept {
    if (__tsan_acquire != nullptr) __tsan_acquire(place_of(key));
}

// Before the release is sent: the next holder may be quicker than this thread.
inline void before_release(std::string_view key) noexcept {
    if (__tsan_release != nullptr) __tsan_release(place_of(key));
}

}  // namespace holdfast::race_detector
