// A lock as a tool sees it: who holds it, who waits, in one instant of the server's time.
//
// Filled from what is in Redis, which others may have written: a value that makes no sense is left out, never
// guessed at. See docs/protocol.md for the wire form.
#pragma once

#include "wire/keys.hpp"
#include "wire/requests.hpp"

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

// What a client says of itself.
struct client_facts {
    std::string host;
    std::string pid;
    std::string program;
    std::string user;
};

enum class access { exclusive, read, write, both };
using wire::wish;

struct lock_holder {
    std::string id = {};
    bool is_foreign = false;
    access mode = access::exclusive;
    std::int64_t count = 1;                   // how often it has entered, if the server knows
    std::optional<std::uint64_t> token = {};  // none: another program's, or unknown
    std::optional<microseconds> held = {};    // since the grant
    std::optional<milliseconds> left = {};    // of its lease; none: no end
    std::optional<client_facts> client = {};  // none: no card
    std::size_t backing = 1;                  // how many servers say so
};

struct lock_waiter {
    std::string id = {};
    wish wants = wish::write;
    microseconds waited = microseconds(0);
    std::optional<microseconds> unseen = {};  // since its last poll
    bool is_silent = false;                   // has missed two polls: it will be passed over
    std::optional<client_facts> client = {};
    std::size_t backing = 1;
};

struct lock_state {
    explicit lock_state(lock_ref place) : where(std::move(place)) {}

    bool is_free() const noexcept { return holders.empty(); }
    bool is_idle() const noexcept { return holders.empty() && waiters.empty() && !is_moving; }
    // By a majority of the servers; of one server, always.
    bool is_backed(const lock_holder& holder) const noexcept { return holder.backing > servers / 2; }
    // How long the one who came first has waited; zero if nobody waits.
    microseconds oldest_wait() const noexcept;

    lock_ref where;
    microseconds server_time{0};  // since the epoch
    bool is_shared_kind = false;  // a read-write lock
    bool is_no_lock = false;      // the key holds something else
    std::string looks_like;       // whose that is, if it can be told: "a Redisson lock"
    bool is_moving = false;       // from one member of a Cluster to another: who holds it cannot be seen
    std::vector<lock_holder> holders;
    std::vector<lock_waiter> waiters;    // in the order they will be served
    std::optional<std::uint64_t> fence;  // the last token given out
    std::size_t servers = 1;             // that were to be asked
};

// "free", "exclusive", "read", "write", "moving", "not a lock".
std::string_view mode_of(const lock_state& lock) noexcept;
std::string_view name_of(access mode) noexcept;
std::string_view name_of(wish wants) noexcept;

}  // namespace holdfast::cli
