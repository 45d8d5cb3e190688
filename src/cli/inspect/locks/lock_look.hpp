// Reads locks from the server: one script call for each lock, so that it is seen at one moment, and many in a write.
//
// A Cluster that moves a slot moves its keys one after the other, and no script sees the keys of a lock while they are
// at two members. Most moves take a moment: the functions wait for that. A lock that still moves is reported as moving.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <holdfast/client.hpp>

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

}  // namespace holdfast::cli
