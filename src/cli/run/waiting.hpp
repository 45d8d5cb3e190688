// Waits in line for the lock, and leaves the line when a signal asks to.
#pragma once

#include "cli/run/run_lock.hpp"
#include "cli/run/signals.hpp"
#include "cli/terminal/waiting_display.hpp"

#include <optional>

namespace holdfast::cli {

struct waited {
    holdfast::lease hold;       // empty: not had in time
    std::optional<int> signal;  // asked to end; the hold is empty then
};

// `line` shows the wait to a person; may be null. Throws holdfast::error if the server cannot be asked.
waited wait_for_lock(run_lock& lock, patience limit, signal_inbox& signals, waiting_display* line);

}  // namespace holdfast::cli
