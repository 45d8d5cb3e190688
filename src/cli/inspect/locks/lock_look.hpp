// Reads locks from the server, those that are named or all that can be found: one script call for each lock, so that it
// is seen at one moment, and many in a write.
//
// A Cluster that moves a slot moves its keys one after the other, and no script sees the keys of a lock while they are
// at two members. Most moves take a moment: the functions wait for that. A lock that still moves is reported as moving.
//
// The search uses SCAN, never KEYS: the server goes on serving others. Every key of a tagged lock and every side key of
// a raw lock has a tag in braces, so a pattern excludes the rest. A raw lock is found by its side keys, and only if
// their content is ours: other programs have keys called `{x}:queue`, too. A raw lock that only other programs ever
// held has no side keys and cannot be found.
//
// In a Cluster every primary is searched. A lock whose keys are at two of them, because its slot moves, counts once.
// The locks of a primary that does not answer are unknown.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <string_view>
#include <vector>

namespace holdfast::cli {

// In the order of `locks`. Throws holdfast::error if the server cannot be reached or refuses.
std::vector<lock_state> look_at(const client& server, const std::vector<lock_ref>& locks);
// One lock. Also throws if the key holds something else, or moves (errc::moving).
lock_state look_at(const client& server, const lock_ref& lock);
// The same on several servers, merged. Throws only if no server answers.
lock_state look_at(server_set& servers, const lock_ref& lock);

// The two steps of look_at(): the locks without the clients of holders and waiters, and those clients as far as their
// cards can be read. In a Cluster other members may keep the cards.
std::vector<lock_state> look_at_keys(const client& server, const std::vector<lock_ref>& locks);
void add_cards(const client& server, std::vector<lock_state>& locks);

struct found_locks {
    std::vector<lock_state> locks;  // sorted by name; a free lock is in it while its fence exists
    std::vector<silence> silent;    // members that cannot be reached
};

// `members`: the primaries of a Cluster. Throws holdfast::error if none of them can be reached.
found_locks find_locks(const client& server, std::string_view prefix, const member_list& members = {});
// The same on several servers, merged, and sorted by name. Throws only if no server answers.
std::vector<lock_state> find_locks(server_set& servers, std::string_view prefix);

}  // namespace holdfast::cli
