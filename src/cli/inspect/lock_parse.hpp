// Makes sense of what lies in Redis for one lock.
#pragma once

#include "cli/inspect/ask.hpp"
#include "cli/inspect/lock_state.hpp"

namespace holdfast::cli {

// `told` is the look script's answer. Throws holdfast::error with errc::protocol_error if it is not of that form.
lock_state parse_lock(const lock_ref& where, const answer& told);

}  // namespace holdfast::cli
