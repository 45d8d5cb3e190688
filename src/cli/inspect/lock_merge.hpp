// What several servers say of a lock, as one lock.
//
// Every holder and every waiter is there once, with the number of servers that know it: a hold is one only while a
// majority backs it. The best backed holder comes first. What else differs from server to server (the time held, what
// is left of the lease) is told as the first server in order has it.
#pragma once

#include "cli/inspect/lock_state.hpp"
#include "cli/inspect/server_set.hpp"

#include <string_view>
#include <vector>

namespace holdfast::cli {

// `seen` is not empty; `servers` is how many there are, those included that did not answer.
lock_state merge(std::vector<lock_state> seen, std::size_t servers);

// As of one server: see lock_look.hpp and lock_search.hpp. Throw only if no server answers.
lock_state look_at(server_set& servers, const lock_ref& lock);
std::vector<lock_state> find_locks(server_set& servers, std::string_view prefix);

// Only holders that a majority backs: who really holds it.
void keep_majorities(std::vector<lock_state>& locks);

}  // namespace holdfast::cli
