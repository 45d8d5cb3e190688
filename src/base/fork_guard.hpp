// Distinguishes a child of fork() from the process that made an object.
//
// A child shares the sockets and the epoll instance of its parent, but none of its threads. It must not use the
// sockets, nor close them through Asio: that would remove them from the parent's epoll set.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace holdfast {

// Grows in the child at every fork(). Compare it with the value at the time when the object was made.
inline std::uint64_t fork_generation() noexcept {
    static std::atomic<std::uint64_t> generation{0};
    static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
    static_cast<void>(registered);
    return generation.load(std::memory_order_relaxed);
}

}  // namespace holdfast
