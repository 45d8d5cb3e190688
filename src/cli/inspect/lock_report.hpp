// One lock in full, for people.
#pragma once

#include "cli/inspect/lock_state.hpp"
#include "cli/terminal/text.hpp"

#include <string>

namespace holdfast::cli {

// Lines, each with its end.
std::string report(const lock_state& lock, const palette& colours);

}  // namespace holdfast::cli
