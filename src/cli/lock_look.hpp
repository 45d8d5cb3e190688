// Reads locks from the server: one script call per lock, so that each is seen in one instant, and many in a write.
#pragma once

#include "cli/lock_state.hpp"

#include <holdfast/client.hpp>

#include <vector>

namespace holdfast::cli {

// In the order they were asked for. Throws holdfast::error if the server cannot be asked or refuses.
std::vector<lock_state> look_at(const client& server, const std::vector<lock_ref>& locks);
// One of them; here a key that holds something else throws, too.
lock_state look_at(const client& server, const lock_ref& lock);

}  // namespace holdfast::cli
