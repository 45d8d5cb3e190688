// The locks that the parent processes hold, as they tell through the environment.
//
// A command that runs under a lock may call `holdfast run` for the same lock; it would wait for its own parent for
// ever. So every run adds its hold to HOLDFAST_HELD, and a nested run of a lock on that list borrows the hold. The list
// is only a claim: it also reaches processes that outlive the hold (a daemon, a terminal multiplexer), so a borrower
// asks the server whether that very hold still has the lock.
//
// Form: entries separated by a space, each `server|key|token|hold id`, every field percent-encoded.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Which lock on which server. Two spellings of one key (tagged "x", raw "hf:{x}") are the same lock.
struct lock_location {
    std::string server;
    std::string key;
    friend bool operator==(const lock_location&, const lock_location&) = default;
};

struct held_lock {
    lock_location where;
    std::uint64_t token = 0;
    std::string hold_id;
};

class held_list {
public:
    // Entries that make no sense are left out.
    static held_list parse(std::string_view text);
    std::string text() const;

    void add(held_lock entry) { entries_.push_back(std::move(entry)); }
    // The latest one there; nothing if none.
    std::optional<held_lock> find(const lock_location& where) const;

private:
    std::vector<held_lock> entries_;
};

enum class standing { none, reads, holds_alone };

// What that very hold still has, by the word of a majority. Throws holdfast::error with errc::no_quorum where too few
// servers answer to tell. It asks for no more than a lock's user may: a nested run must not need rights that the outer
// one did not.
standing standing_of(server_set& servers, const lock_ref& lock, const std::string& hold_id);

}  // namespace holdfast::cli
