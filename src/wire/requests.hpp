// Requests and answers of the lock scripts in C++ terms, the same for every kind of lock.
//
// kind.hpp turns a request into the script call of its kind. The wire form is known in this folder and nowhere else.
#pragma once

#include "redis/session/command.hpp"
#include "wire/keys.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::wire {

using std::chrono::milliseconds;

enum class lock_kind : std::uint8_t { mutex, read_write, semaphore };

// Which waiters go first. A kind without a shared mode ignores it.
enum class preference : std::uint8_t { arrival, readers, writers };

enum class wish : std::uint8_t { write, read, upgrade };

// What a hold allows, or what is left of it from now on.
enum class shape : std::uint8_t { nothing, reading, writing, both };

// The lock, and what is the same in every request about it.
struct lock_terms {
    const lock_keys& keys;
    lock_kind kind = lock_kind::mutex;
    preference prefer = preference::arrival;
    milliseconds fence_retention{0};
    std::uint64_t proposal = 0;  // the next token, if the server accepts it; 0: the server chooses
    std::uint32_t limit = 1;     // of a semaphore: how many permits the caller says that there are
};

// Instead of a wake-up channel: the waiter listens nowhere, polls, and is alive while it does.
inline constexpr std::string_view by_polls = "-";

struct acquire_request {
    std::string_view id;
    wish wants = wish::write;
    milliseconds lease;
    std::uint64_t token_floor = 0;
    std::string_view channel;  // empty: do not wait; or by_polls
    std::string_view ticket;   // of the last answer; empty: none yet
    milliseconds poll_interval{0};
    milliseconds queue_retention{0};
    std::uint64_t upgrading = 0;  // token of the hold to upgrade
    std::uint64_t gives_way = 0;  // token of the grant that the caller gives up for the first waiter
    std::uint64_t ceiling = 0;    // of the grant to give up, if the id is marked: the last that this node told
    bool asks_back = true;        // a try that marked holders refuse tells them that they are wanted (healing does not)
    std::uint32_t permits = 1;    // of a semaphore
    std::string_view note = {};   // only with an id that says so (is_noted); empty: none
    bool asks_for_note = false;   // the holder that was met has one: it is to be told
};

struct acquire_answer {
    enum class verdict : std::uint8_t { held, refused, queued, gone } what = verdict::refused;
    enum class reason : std::uint8_t {
        held,
        reading,
        writing,
        reserved,
        deadlock,
        other_mode,
        other_limit,
        over_limit
    };

    std::uint64_t token = 0;                  // held
    reason why = reason::held;                // refused
    std::optional<milliseconds> holder_left;  // refused, queued: the longest of all leases; none: one has no end
    std::string_view holder;                  // refused, queued
    std::string_view ticket;                  // queued
    std::size_t position = 0;                 // queued: position in the queue; 0 is next
    std::uint64_t fence = 0;                  // queued: the last token that was granted
    std::optional<milliseconds> soonest;      // queued: until the first of the holders may be gone
    // held, queued: the server's clock when the script ran, since 1970. Only if the request proposed a token.
    std::optional<std::chrono::microseconds> clock;
    // held, queued, read-write lock: another program shortened the hash's expiry to this
    std::optional<milliseconds> cut_to;
    // held by a marked id: the tokens up to this one may be used, too; 0: the id is not marked
    std::uint64_t ceiling = 0;
    std::size_t waiters = 0;  // held by a marked id: the others that wait
    // refused: marked holders alone are in the way, nobody waits, and they were told that they are wanted
    bool is_kept = false;
    // refused with other_limit or over_limit: the limit that the server knows
    std::uint32_t limit = 0;
    // refused, queued: the holder's, if the request asked for it
    std::string_view note;
};

struct release_request {
    std::string_view id;
    std::uint64_t token = 0;  // 0: any grant of this id, and its position in the queue
    shape left_over = shape::nothing;
    milliseconds lease{0};        // of what is left over
    milliseconds yield_after{0};  // raw lock: other programs get a turn after this time; 0: never
};

struct renew_request {
    std::string_view id;
    milliseconds lease;
    milliseconds delay{0};  // of a mutex: with no more than this left, its lease is over
    // The note is kept for as long. Its key may be missing, or at the other member, while a Cluster moves the slot.
    bool keeps_note = true;
};

// Renews a hold with a marked id, and fetches tokens for its local grants. It names keys that may be missing while a
// Cluster moves the lock's slot; then renew_request, or renew_alone_request where the kind has it, renews without new
// tokens.
struct renew_block_request {
    std::string_view id;
    milliseconds lease;
    milliseconds delay{0};  // as in renew_request
    // The last token that the caller would like to use. The server gives the tokens up to its clock. It goes up to this
    // one only where its clock is behind the last token.
    std::uint64_t ceiling = 0;
};

// The next two requests work while a Cluster moves the lock's slot. The queue's keys may be missing then, or at the
// other member, and a script that names a missing key does not run.

// Ends a hold whose release was requested already, and whose id will never acquire again. A full release must follow:
// it serves the queue. For kinds with can_release_alone().
struct release_alone_request {
    std::string_view id;
};

// For kinds with can_renew_alone(); the others always renew this way.
struct renew_alone_request {
    std::string_view id;
    milliseconds lease;
};

// Stops waiting for an upgrade. For kinds with has_shared_mode().
struct cancel_request {
    std::string_view id;
};

// Replaces the token of a grant by a greater one. A marked grant whose ceiling is not below that token has it already;
// otherwise the token is its ceiling, too, from then on.
struct raise_request {
    std::string_view id;
    std::uint64_t token = 0;
    std::uint64_t to = 0;
    std::uint64_t ceiling = 0;  // of a marked grant: the last that this node told
};

// Asks whether a grant still exists. The answer is the time left of its lease in ms, 0 if it does not exist. If it
// does, the script writes something that changes nothing, for replicas to acknowledge.
struct confirm_request {
    std::string_view id;
    std::uint64_t token = 0;    // 0: any grant of this id; a mutex then needs its own key only
    std::uint64_t ceiling = 0;  // of a marked grant: the server must have this one, too; 0: none
};

// The answer of release, renew, renew_block, cancel and raise.
struct hold_answer {
    enum class verdict : std::uint8_t {
        done,
        not_held,
        held_by_other,
        alone,    // release_alone: released, but the queue is still to be served
        unclear,  // renew_alone: nothing was done; send a full renewal
    } what = verdict::not_held;
    std::optional<milliseconds> holder_left = {};
    std::string_view holder = {};
    std::size_t waiters = 0;                  // release: waiters left in the queue; renew_block: that wait now
    std::size_t holders = 0;                  // release: number of holders now
    shape held = shape::nothing;              // renew, cancel and raise, of a read-write lock
    std::uint64_t token = 0;                  // renew, cancel and raise, of a read-write lock
    std::optional<milliseconds> cut_to = {};  // renew, as in acquire_answer
    std::uint64_t ceiling = 0;                // renew_block: as in acquire_answer
};

// All kinds answer in one form. Nothing if the reply does not have it.
std::optional<acquire_answer> read_acquire(const redis::reply_view& reply);
std::optional<hold_answer> read_release(const redis::reply_view& reply);
std::optional<hold_answer> read_release_alone(const redis::reply_view& reply);
std::optional<hold_answer> read_hold(const redis::reply_view& reply);  // of renew, renew_block, cancel and raise
std::optional<hold_answer> read_renew_alone(const redis::reply_view& reply);

}  // namespace holdfast::wire
