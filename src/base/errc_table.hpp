// What each errc means to the library: one row for each code, in one table.
//
// The layers decide by these properties, not by lists of codes of their own. A new code needs its row in
// errc_table.cpp; a test checks that none is missing.
#pragma once

#include <holdfast/errors.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace holdfast {

// Why something failed: a code for programs and a sentence for people.
struct failure {
    errc code = errc::server_error;
    std::string detail;  // names the server; never contains a secret
};

struct errc_row {
    errc code;
    const char* name;  // as the enumerator is spelled
    std::uint8_t traits;
    const char* message;  // what happened, then what to try; names no server
};

// In the order of the enumeration.
std::span<const errc_row> errc_table() noexcept;
// Null for a number that is no errc.
const errc_row* find_errc(errc code) noexcept;

// The answer to a caller that does not wait, or waits with a limit: "no", and not an error.
bool is_plain_no(errc code) noexcept;
// The lock itself says no. Any other code is a trouble of one node and costs only that node hold.
bool is_of_the_lock(errc code) noexcept;
// Says nothing about the lock, only about the way to the node.
bool is_silence(errc code) noexcept;
// A refusal by the server that ends by itself: what must reach the server is sent again, and a waiter asks again.
bool may_pass(errc code) noexcept;
// No retry cures it: wrong password, wrong certificate, too old, not Redis.
bool is_permanent(errc code) noexcept;
// The link that gave this answer is of no more use: it needs a new greeting, or does not lead to a primary.
bool spoils_link(errc code) noexcept;

}  // namespace holdfast
