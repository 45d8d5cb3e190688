// For tools: a lock of any kind as it stands, holders and waiters, at one moment of the server's clock.
//
// Other programs may have written into the keys. A value that makes no sense is left out, never guessed.
#pragma once

#include "wire/requests.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::wire {

using std::chrono::microseconds;

enum class access : std::uint8_t { exclusive, read, write, both, permits };

struct seen_holder {
    std::string id = {};
    bool is_foreign = false;
    access mode = access::exclusive;
    std::int64_t count = 1;                   // how often it has entered, if the server knows
    std::optional<std::uint64_t> token = {};  // none: another program's, or unknown
    std::optional<microseconds> held = {};    // since the grant
    std::optional<milliseconds> left = {};    // of its lease; none: no end
    std::uint32_t permits = 1;                // of a semaphore
    std::string note = {};                    // any bytes; empty: none
};

struct seen_waiter {
    std::string id = {};
    wish wants = wish::write;
    microseconds waited = microseconds(0);
    std::optional<microseconds> unseen = {};  // since its last poll
    bool is_silent = false;                   // it missed two polls; a hand-over will pass it over
    std::uint32_t permits = 1;                // of a semaphore
    std::string note = {};
};

// How many permits a semaphore has.
struct limit_facts {
    std::uint32_t declared = 1;  // what the programs say that use it
    std::uint32_t present = 1;   // the same, unless it was resized
    std::string version = {};    // of the present limit, since it was resized
};

struct look_answer {
    microseconds server_time{0};    // since the epoch
    std::optional<lock_kind> kind;  // none: free, or no lock
    bool is_no_lock = false;        // the key holds something else
    std::string looks_like;         // what that is, if it is known: "a Redisson lock"
    std::vector<seen_holder> holders;
    std::vector<seen_waiter> waiters;    // in the order of the queue
    std::optional<std::uint64_t> fence;  // the last token that was granted
    std::optional<limit_facts> limit;    // of a semaphore
};

void write_look(redis::command& out, const lock_keys& keys);
// Nothing if the reply does not have the form of tools/look.
std::optional<look_answer> read_look(const redis::reply_view& reply);

// What a kind reads its holders from: the parts of the answer of tools/look.
struct stored_lock {
    std::string_view type;  // of the lock's key, as TYPE says it
    std::optional<milliseconds> key_left;
    redis::reply_view value;   // of the lock's key; of a hash, fields and values
    redis::reply_view leases;  // ids and deadlines
    redis::reply_view grants;  // ids and grants
};

// The token, and since when it is held: a token is the time of its grant.
void set_token(seen_holder& holder, std::optional<std::uint64_t> token, microseconds now);

}  // namespace holdfast::wire
