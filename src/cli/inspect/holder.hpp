// Who has a lock, by the server's word. Reads only.
#pragma once

#include "cli/inspect/held_list.hpp"
#include "cli/inspect/lock_state.hpp"
#include "cli/inspect/server_set.hpp"

#include <string>

namespace holdfast::cli {

enum class standing { none, reads, holds_alone };

// What that very hold still has. Throws holdfast::error if the server cannot be asked. It asks for no more than a
// lock's user may: a nested run must not need rights that the outer one did not.
standing standing_of(const client& server, const lock_ref& lock, const std::string& hold_id);

// The same by the word of a majority. Throws holdfast::error with errc::no_quorum where too few answer to tell.
standing standing_of(server_set& servers, const lock_ref& lock, const std::string& hold_id);

// "held by … for 12s, 28s of its lease left", "read by … and 2 others", "it is free by now".
std::string describe_holders(const lock_state& lock);
// The same as far as it can be learnt; empty if nothing can.
std::string describe_holders(server_set& servers, const lock_ref& lock);

}  // namespace holdfast::cli
