// A lock as the command shows it: its holders and its waiters, with the clients that they belong to.
//
// wire/look.hpp reads it from one server; merge() makes one state of what several servers say.
#pragma once

#include "wire/hold_id.hpp"
#include "wire/keys.hpp"
#include "wire/kind.hpp"
#include "wire/look.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A lock of any kind, and its keys.
struct lock_ref {
    lock_ref(wire::lock_name its_name, wire::key_naming its_naming, std::string_view prefix);

    wire::lock_name name;
    wire::key_naming naming;
    wire::lock_keys keys;
};

using wire::access;
using wire::client_facts;
using wire::wish;

struct lock_holder : wire::seen_holder {
    std::optional<client_facts> client = {};  // none: no card
    std::size_t backing = 1;                  // number of servers that say so
};

// Its client gives it back when it is asked to and does not use it.
inline bool is_kept(const lock_holder& holder) noexcept {
    return wire::mark_of(holder.id) != wire::mark::none;
}

struct lock_waiter : wire::seen_waiter {
    std::optional<client_facts> client = {};
    std::size_t backing = 1;
};

struct lock_state {
    explicit lock_state(lock_ref lock) : where(std::move(lock)) {}
    // As one server sees it.
    lock_state(lock_ref lock, wire::look_answer seen);

    bool is_free() const noexcept { return holders.empty(); }
    bool is_idle() const noexcept { return holders.empty() && waiters.empty() && !is_moving; }
    // Readers share this kind of lock.
    bool is_shared_kind() const noexcept { return kind && wire::kind_of(*kind).has_shared_mode(); }
    // Of a semaphore: the sum of what its holders have.
    std::uint64_t permits_out() const noexcept;
    // By a majority of the servers; of one server, always.
    bool is_backed(const lock_holder& holder) const noexcept { return holder.backing > servers / 2; }
    // The longest wait of all waiters; zero if nobody waits.
    microseconds oldest_wait() const noexcept;

    lock_ref where;
    microseconds server_time{0};          // since the epoch
    std::optional<wire::lock_kind> kind;  // none: free, or no lock
    bool is_no_lock = false;              // the key holds something else
    std::string looks_like;               // what that is, if it is known: "a Redisson lock"
    bool is_moving = false;               // from one member of a Cluster to another: its holders are not visible
    std::vector<lock_holder> holders;
    std::vector<lock_waiter> waiters;        // in the order of the queue
    std::optional<std::uint64_t> fence;      // the last token that was granted
    std::optional<wire::limit_facts> limit;  // of a semaphore
    std::size_t servers = 1;                 // number of servers, those included that did not answer
};

// What several servers say of a lock, as one lock. `seen` is not empty; `servers` includes those that did not answer.
//
// Every holder and every waiter is there once, with the number of servers that know it: a hold is one only while a
// majority backs it. The best backed holder comes first. What else differs from server to server (the time held, what
// is left of the lease) is told as the first server in order has it.
lock_state merge(std::vector<lock_state> seen, std::size_t servers);
// The same of the answers of all servers, at least one of which has answered.
lock_state merge(std::vector<std::optional<lock_state>> answers);
// Removes the holders that no majority backs.
void keep_majorities(std::vector<lock_state>& locks);

// "free", "exclusive", "read", "write", "semaphore", "moving", "not a lock".
std::string_view mode_of(const lock_state& lock) noexcept;
std::string_view name_of(access mode) noexcept;
std::string_view name_of(wish wants) noexcept;

}  // namespace holdfast::cli
