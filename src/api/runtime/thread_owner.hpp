// The owners of locks: threads, and objects of the class `owner`. Each number is used once in a process.
//
// A thread's owner number is never reused, unlike std::thread::id, so a new thread does not own the hold of a dead one.
// A thread that ends while it holds a lock never unlocks it: the client stops the renewal, so that the lease ends.
#pragma once

#include "api/runtime/core.hpp"

#include <holdfast/owner.hpp>

#include <atomic>
#include <cstddef>
#include <memory>

namespace holdfast::api {

std::uint64_t next_owner_number() noexcept;

struct owner_access {
    static std::uint64_t number(const owner& of) noexcept { return of.number_; }
};

engine::owner_id this_thread_as_owner();

// How many levels a thread has locked, for the end of the thread. The thread that carries out an unlock decrements it,
// which may be another thread. Null after the end of the thread's storage: a static object may still lock and unlock
// then, without being counted.
struct locked_levels {
    std::atomic<std::size_t> of_engine = 0;
    std::atomic<std::size_t> local = 0;  // by local grants of kept locks
};
using lock_count = std::shared_ptr<locked_levels>;
lock_count locked_by_this_thread(const std::shared_ptr<core>& where);
// For unlock, which must not allocate. Null also if the thread never locked anything with that client.
lock_count known_locks_of_this_thread(const std::shared_ptr<core>& where) noexcept;
void count_up(const lock_count& locked) noexcept;
void count_down(const lock_count& locked) noexcept;

}  // namespace holdfast::api
