// Locks in a table, one line each, as ls and top show them.
#pragma once

#include "cli/inspect/lock_state.hpp"
#include "cli/terminal/text.hpp"

#include <vector>

namespace holdfast::cli {

// With a heading.
table tabulate(const std::vector<lock_state>& locks);

}  // namespace holdfast::cli
