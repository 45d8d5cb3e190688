// The lock scripts in C++ terms: what is asked and what is answered, of a mutex and of a read-write lock alike. The
// wire form is known here and in the .lua files, nowhere else.
#pragma once

#include "redis/session/command.hpp"
#include "wire/keys.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::wire {

using std::chrono::milliseconds;

enum class lock_kind : std::uint8_t { mutex, read_write };

// Who goes first where readers and writers wait. No matter for a mutex.
enum class preference : std::uint8_t { arrival, readers, writers };

enum class wish : std::uint8_t { write, read, upgrade };

// What somebody holds, or is to hold from now on.
enum class shape : std::uint8_t { nothing, reading, writing, both };

// Which lock, and what is the same in every question about it.
struct lock_terms {
    const lock_keys& keys;
    lock_kind kind = lock_kind::mutex;
    preference prefer = preference::arrival;
    milliseconds fence_retention{0};
    std::uint64_t proposal = 0;  // what the next token had best be; 0: let the server say
};

struct acquire_request {
    std::string_view id;
    wish wants = wish::write;
    milliseconds lease;
    std::uint64_t token_floor = 0;
    std::string_view channel;  // empty: do not wait
    std::string_view ticket;   // of the last answer; empty: none yet
    milliseconds poll_interval{0};
    milliseconds queue_retention{0};
    std::uint64_t upgrading = 0;  // the token of the hold that is to be upgraded
    std::uint64_t gives_way = 0;  // the token of the grant that is given up for whoever is first in line
};

struct acquire_answer {
    enum class verdict : std::uint8_t { held, refused, queued, gone } what = verdict::refused;
    enum class reason : std::uint8_t { held, reading, writing, reserved, deadlock, other_mode };

    std::uint64_t token = 0;                  // held
    reason why = reason::held;                // refused
    std::optional<milliseconds> holder_left;  // refused, queued: the longest of all leases; none: one has no end
    std::string_view holder;                  // refused, queued
    std::string_view ticket;                  // queued
    std::size_t place = 0;                    // queued: 0 is next
    std::uint64_t fence = 0;                  // queued: the last token given out
    std::optional<milliseconds> soonest;      // queued: when the first of the holders may be gone
    // held, queued: the server's clock when the script ran, since 1970, where a token was proposed
    std::optional<std::chrono::microseconds> clock;
    // held, queued, of a read-write lock: another program has cut the hash's expiry, and this was left of it
    std::optional<milliseconds> cut_to;
};

struct release_request {
    std::string_view id;
    std::uint64_t token = 0;  // 0: any grant of this id, and its place in line
    shape left_over = shape::nothing;
    milliseconds lease{0};        // of what is left over
    milliseconds yield_after{0};  // of a raw lock: other programs get a turn after so long; 0: none
};

struct renew_request {
    std::string_view id;
    milliseconds lease;
};

// These two ask for what can be had while a Cluster moves the lock's slot: the keys of those who wait may be missing or
// elsewhere then, and a script that names them would not run.

// Of a mutex whose release was asked for already, and by whose id nobody will ask for it again. The release in full has
// to follow: it serves the line.
struct release_alone_request {
    std::string_view id;
};

// Of a read-write lock; a mutex is always renewed so.
struct renew_alone_request {
    std::string_view id;
    milliseconds lease;
};

// Of an upgrade that was waited for.
struct cancel_request {
    std::string_view id;
};

// The token of a grant becomes another, greater one.
struct raise_request {
    std::string_view id;
    std::uint64_t token = 0;
    std::uint64_t to = 0;
};

// Whether a grant is still there, which is answered with the ms that are left of its lease, 0 if it is not; if it is,
// something has been written that changes nothing, for replicas to acknowledge.
struct confirm_request {
    std::string_view id;
    std::uint64_t token = 0;  // 0: whichever; then a mutex is asked for by the lock's own key alone
};

// The answer of release, renew, cancel and raise.
struct hold_answer {
    enum class verdict : std::uint8_t {
        done,
        not_held,
        held_by_other,
        alone,    // release_alone: released, but the line is still to be served
        unclear,  // renew_alone: nothing was done, ask in full
    } what = verdict::not_held;
    std::optional<milliseconds> holder_left;
    std::string_view holder;
    std::size_t waiters = 0;             // release: still in line
    std::size_t holders = 0;             // release: who hold it now
    shape held = shape::nothing;         // renew, cancel and raise, of a read-write lock
    std::uint64_t token = 0;             // renew, cancel and raise, of a read-write lock
    std::optional<milliseconds> cut_to;  // renew, as in acquire_answer
};

void write(redis::command& out, const lock_terms& lock, const acquire_request& question);
void write(redis::command& out, const lock_terms& lock, const release_request& question);
void write(redis::command& out, const lock_terms& lock, const renew_request& question);
void write(redis::command& out, const lock_terms& lock, const release_alone_request& question);
void write(redis::command& out, const lock_terms& lock, const renew_alone_request& question);
void write(redis::command& out, const lock_terms& lock, const cancel_request& question);
void write(redis::command& out, const lock_terms& lock, const raise_request& question);
void write(redis::command& out, const lock_terms& lock, const confirm_request& question);

// Nothing if the reply is not of the agreed form: a server that answers nonsense.
std::optional<acquire_answer> read_acquire(const redis::reply_view& reply);
std::optional<hold_answer> read_release(const redis::reply_view& reply);
std::optional<hold_answer> read_release_alone(const redis::reply_view& reply);
std::optional<hold_answer> read_hold(const redis::reply_view& reply);  // of renew, cancel and raise
std::optional<hold_answer> read_renew_alone(const redis::reply_view& reply);

}  // namespace holdfast::wire
