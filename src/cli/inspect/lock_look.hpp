// Reads locks from the server: one script call per lock, so that each is seen in one instant, and many in a write.
//
// A Cluster that moves a slot moves its keys one after the other, and no script sees those of a lock while some are
// here and some there. Most moves are over in a moment, which is waited for; a lock that moves on is told as such.
#pragma once

#include "cli/inspect/lock_state.hpp"

#include <holdfast/client.hpp>

#include <vector>

namespace holdfast::cli {

// In the order they were asked for. Throws holdfast::error if the server cannot be asked or refuses.
std::vector<lock_state> look_at(const client& server, const std::vector<lock_ref>& locks);
// One of them; here a key that holds something else throws, too, and one that is moving (errc::moving).
lock_state look_at(const client& server, const lock_ref& lock);

// The two steps of it. The locks, without who their holders and waiters are; and that, as far as it can be had: in a
// Cluster it is kept by other members than the locks.
std::vector<lock_state> look_at_keys(const client& server, const std::vector<lock_ref>& locks);
void add_cards(const client& server, std::vector<lock_state>& locks);

}  // namespace holdfast::cli
