// Waits in line for the lock, and leaves the line when a signal asks to.
#pragma once

#include "cli/signals.hpp"

#include <holdfast/mutex.hpp>

#include <chrono>
#include <optional>

namespace holdfast::cli {

// How long to wait: not at all (zero), so long, or without limit (nothing).
using patience = std::optional<std::chrono::milliseconds>;

struct waited {
    holdfast::lease hold;       // empty: not had in time
    std::optional<int> signal;  // asked to end; the hold is empty then
};

// Throws holdfast::error if the server cannot be asked.
waited wait_for_lock(holdfast::mutex& lock, patience limit, signal_inbox& signals);

}  // namespace holdfast::cli
