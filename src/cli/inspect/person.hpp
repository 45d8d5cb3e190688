// How somebody who holds or waits is called.
#pragma once

#include "cli/inspect/lock_state.hpp"

#include <string>

namespace holdfast::cli {

// "alice@web-1 backup[4242]"; of those without a card, the id.
std::string person(const lock_holder& holder);
std::string person(const lock_waiter& waiter);

// "2 of 3": how many servers say that it holds the lock.
std::string backing_text(const lock_state& lock, const lock_holder& holder);

}  // namespace holdfast::cli
