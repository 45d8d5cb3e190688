// Asks before what cannot be undone.
#pragma once

#include <string>

namespace holdfast::cli {

// False also where there is nobody to ask: input or error output is no terminal.
bool user_agrees(const std::string& question);

}  // namespace holdfast::cli
