// Finds the locks of a server by their keys.
//
// SCAN, never KEYS: the server goes on serving others meanwhile. Every key of a tagged lock and every side key of
// a raw one has a tag in braces, so the server can sort out the rest by a pattern. A raw lock is found by its side
// keys, and only if what is in them is ours: other programs have keys called `{x}:queue`, too. One that was
// only ever held by other programs has none and cannot be told from any other key.
//
// Of a Cluster every primary is searched. A lock whose keys are on two of them, because its slot is moving, is one.
// What one that does not answer has is not known; the locks of the others are.
#pragma once

#include "cli/inspect/cluster_members.hpp"
#include "cli/inspect/lock_state.hpp"

#include <holdfast/client.hpp>

#include <string_view>
#include <vector>

namespace holdfast::cli {

struct found_locks {
    std::vector<lock_state>
        locks;                    // also those that are free and only remembered by their fencing mark; sorted by name
    std::vector<silence> silent;  // members that could not be asked
};

// `members`: of a Cluster, its primaries. Throws holdfast::error if none of them can be asked.
found_locks find_locks(const client& server, std::string_view prefix, const member_list& members = {});

}  // namespace holdfast::cli
