// Locks for people: as a sentence, a report, or a table.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"
#include "cli/terminal/text.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

// "alice@web-1 backup[4242]"; the id where there is no card.
std::string person(const lock_holder& holder);
std::string person(const lock_waiter& waiter);

// "held by … for 12s, 28s of its lease left", "read by … and 2 others", "it is free by now".
std::string describe_holders(const lock_state& lock);
// "note: …" of the first holder; empty: it has none.
std::string describe_note(const lock_state& lock);
std::string describe_holders_and_note(const lock_state& lock);
// The same as far as it can be learnt; empty if nothing can.
std::string describe_holders(server_set& servers, const lock_ref& lock);

// One lock in full, in several lines.
std::string report(const lock_state& lock, const palette& colours);

// One lock per row, with a heading, as ls and top show them.
table tabulate(const std::vector<lock_state>& locks);

}  // namespace holdfast::cli
