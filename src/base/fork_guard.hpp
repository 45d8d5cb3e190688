// Tells a child of fork() from the process that made an object.
//
// A child shares its parent's sockets and epoll instance but none of its threads: it may neither use nor even
// close them through Asio, which would take them out of the parent's epoll set.
#pragma once

#include <cstdint>

namespace holdfast {

// Grows in the child at every fork(); compare with what it was when the object was made.
std::uint64_t fork_generation() noexcept;

}  // namespace holdfast
