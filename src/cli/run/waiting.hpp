// Waits in the queue for the lock, and leaves it when a signal asks to end.
#pragma once

#include "cli/run/run_lock.hpp"
#include "cli/terminal/signals.hpp"
#include "cli/terminal/waiting_display.hpp"

#include <optional>

namespace holdfast::cli {

struct waited {
    holdfast::lease hold;       // empty: not acquired in time
    std::optional<int> signal;  // asked to end; the hold is empty then
};

// `display` shows the wait at a terminal; may be null. Throws holdfast::error if the server cannot be asked.
waited wait_for_lock(run_lock& lock, patience limit, signal_inbox& signals, waiting_display* display);

}  // namespace holdfast::cli
