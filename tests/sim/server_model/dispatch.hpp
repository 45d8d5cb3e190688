// From words to a handler: lookup, arity, and the refusals of a server before a command runs. Inside a script the same
// refusal has another text and another order; both are here side by side.
//
// A script that uses an undeclared key works on a lone server and fails on a Cluster. In strict mode that is an error
// of the program under test: server_model::execute throws it instead of replying.
#pragma once

#include <stdexcept>
#include <vector>

#include "server_model/command.hpp"

namespace holdfast::sim {

/// A script used a key that is not among its KEYS.
class undeclared_key : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

enum class key_check : std::uint8_t { strict, off };

/// What one run of a script has declared and done so far.
struct script_run {
    std::string_view sha1;
    arguments keys;
    arguments args;
    key_check check = key_check::strict;
    bool has_written = false;  // a full server lets a script continue once it has written
};

value execute_command(context& ctx, arguments args);
/// May throw undeclared_key.
value execute_in_script(context& ctx, arguments args, script_run& run);

}  // namespace holdfast::sim
