// Distinguishes a child of fork() from the process that made an object.
//
// A child shares the sockets and the epoll instance of its parent, but none of its threads. It must not use the
// sockets, nor close them through Asio: that would remove them from the parent's epoll set.
#pragma once

#include <cstdint>

namespace holdfast {

// Grows in the child at every fork(). Compare it with the value at the time when the object was made.
std::uint64_t fork_generation() noexcept;

}  // namespace holdfast
