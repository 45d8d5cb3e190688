// A thread as the owner of locks.
//
// Its number is never used again, unlike std::thread::id, so a dead thread's hold is not its successor's. A
// thread that ends while it holds something will never unlock: renewal of it stops, so that the lease ends
// and others get in.
#pragma once

#include "api/runtime/core.hpp"

#include <atomic>
#include <cstddef>
#include <memory>

namespace holdfast::api {

engine::owner_id this_thread_as_owner();

// Bookkeeping for the end of the thread: how many levels it has locked, outermost or not. Whoever carries out an unlock
// counts it, and that may be another thread. Null if the thread's end is behind it: a static object may still lock and
// unlock then, and nobody counts.
using lock_count = std::shared_ptr<std::atomic<std::size_t>>;
lock_count locked_by_this_thread(const std::shared_ptr<core>& where);
// For one who unlocks, and must not fail for want of memory here: null also if it never locked anything by that client.
lock_count known_locks_of_this_thread(const std::shared_ptr<core>& where) noexcept;
void count_up(const lock_count& locked) noexcept;
void count_down(const lock_count& locked) noexcept;

}  // namespace holdfast::api
