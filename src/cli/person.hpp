// How somebody who holds or waits is called.
#pragma once

#include "cli/lock_state.hpp"

#include <string>

namespace holdfast::cli {

// "alice@web-1 backup[4242]"; of those without a card, the id.
std::string person(const lock_holder& holder);
std::string person(const lock_waiter& waiter);

}  // namespace holdfast::cli
