// Locks in a table, one line each, as ls and top show them.
#pragma once

#include "cli/lock_state.hpp"
#include "cli/text.hpp"

#include <vector>

namespace holdfast::cli {

// With a heading.
table tabulate(const std::vector<lock_state>& locks);

}  // namespace holdfast::cli
