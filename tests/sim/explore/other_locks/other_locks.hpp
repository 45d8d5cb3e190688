// Locks of others, as they are written down, for the same model of a server. The exploration must find what is wrong
// with them.
#pragma once

#include <memory>

#include "explore/lock_user.hpp"
#include "explore/small_world.hpp"

namespace holdfast::sim::explore {

/// A fair queue of SETNX, RPUSH, RPOP and PUBLISH: who finds the lock taken waits in a list, subscribes, and tries
/// again when its name is published. Without an expiry.
std::unique_ptr<process> make_queue_lock(small_world& where, std::size_t number, std::vector<act> steps);

/// The same, but it subscribes before it asks.
std::unique_ptr<process> make_subscribed_queue_lock(small_world& where, std::size_t number, std::vector<act> steps);

/// A read-write lock in which a waiting writer leaves a mark that keeps new readers out. `act::acquire` writes.
std::unique_ptr<process> make_wait_mark_lock(small_world& where, std::size_t number, std::vector<act> steps);

/// The same, but a writer that waits tries again from time to time, too.
std::unique_ptr<process> make_polling_wait_mark_lock(small_world& where, std::size_t number, std::vector<act> steps);

/// Redlock as published: SET NX PX at all servers; held if a majority said yes soon enough. No fencing.
std::unique_ptr<process> make_redlock(small_world& where, std::size_t number, std::vector<act> steps);

}  // namespace holdfast::sim::explore
