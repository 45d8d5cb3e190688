// Finds the locks of a server by their keys.
//
// It uses SCAN, never KEYS: the server goes on serving others. Every key of a tagged lock and every side key of a raw
// lock has a tag in braces, so a pattern excludes the rest. A raw lock is found by its side keys, and only if their
// content is ours: other programs have keys called `{x}:queue`, too. A raw lock that only other programs ever held has
// no side keys and cannot be found.
//
// In a Cluster every primary is searched. A lock whose keys are at two of them, because its slot moves, counts once.
// The locks of a primary that does not answer are unknown.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <string_view>
#include <vector>

namespace holdfast::cli {

struct found_locks {
    std::vector<lock_state> locks;  // sorted by name; a free lock is in it while its fence exists
    std::vector<silence> silent;    // members that cannot be reached
};

// `members`: the primaries of a Cluster. Throws holdfast::error if none of them can be reached.
found_locks find_locks(const client& server, std::string_view prefix, const member_list& members = {});
// The same on several servers, merged, and sorted by name. Throws only if no server answers.
std::vector<lock_state> find_locks(server_set& servers, std::string_view prefix);

}  // namespace holdfast::cli
