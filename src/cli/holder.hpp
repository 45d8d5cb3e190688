// Who has a lock, by the server's word. Reads only.
#pragma once

#include "cli/held_list.hpp"
#include "scripts/names.hpp"

#include <holdfast/client.hpp>

#include <string>

namespace holdfast::cli {

// That very hold still has the lock. Throws holdfast::error if the server cannot be asked.
bool still_holds(const client& server, const held_lock& claim);

// "held by … for 12s, 28s of its lease left" as far as it can be learnt; empty if nothing can.
std::string describe_holder(const client& server, const scripts::lock_keys& keys);

}  // namespace holdfast::cli
