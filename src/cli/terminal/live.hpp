// Rests between two looks at a server, and hears what the user wants meanwhile.
#pragma once

#include "cli/run/signals.hpp"

#include <chrono>

namespace holdfast::cli {

enum class woken {
    by_time,
    by_input,   // there is something to read
    by_resize,  // the terminal has another size
    by_stop,    // Ctrl-Z: the caller stops itself with stop_this_process()
    by_end,     // asked to end
};

constexpr int no_input = -1;

// Returns after `at_most`, or earlier with the reason. `input` is a descriptor to wait for, too.
woken rest(signal_inbox& signals, std::chrono::milliseconds at_most, int input = no_input);

}  // namespace holdfast::cli
