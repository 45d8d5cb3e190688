// What the command's exit status means, and the exception that ends it with a message.
//
// 124 to 127 are kept as timeout(1), env(1) and nice(1) have them, so that scripts need no second table.
#pragma once

#include <stdexcept>

namespace holdfast::cli {

enum exit_code : int {
    all_well = 0,
    not_acquired = 1,      // -E changes it
    not_running = 1,       // of `server status`
    lock_lost = 75,        // EX_TEMPFAIL of sysexits.h: try again later
    own_failure = 125,     // holdfast itself: usage, no server, wrong password
    not_executable = 126,  // the command was found but could not be run
    not_found = 127,
    killed_by_signal = 128,  // plus the signal's number
};

// A sentence for the user; ends the command with own_failure.
class trouble : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace holdfast::cli
