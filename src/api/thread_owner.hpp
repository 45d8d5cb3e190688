// A thread as the owner of locks.
//
// Its number is never used again, unlike std::thread::id, so a dead thread's hold is not its successor's. A
// thread that ends while it holds something will never unlock: renewal of it stops, so that the lease ends
// and others get in.
#pragma once

#include "api/core.hpp"

#include <memory>

namespace holdfast::api {

engine::owner_id this_thread_as_owner();

// Bookkeeping for the end of the thread: what it has locked (+1) and unlocked (-1), outermost or not.
void thread_locked(const std::shared_ptr<core>& where);
void thread_unlocked(const std::shared_ptr<core>& where) noexcept;

}  // namespace holdfast::api
