// From words to a handler: lookup, arity, and the refusals a server gives before a command runs.
//
// The same command is refused in other words inside a script than outside, and in another order; both are
// here side by side. A script that touches a key it did not declare works on a lone server and breaks on a
// Cluster, so in strict mode it is an error of the program under test, thrown out of server_model::execute, and not a
// reply.
#pragma once

#include <stdexcept>
#include <vector>

#include "server_model/command.hpp"

namespace holdfast::sim {

/// A script touched a key that is not among its KEYS.
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
    bool has_written = false;  // a full server lets a script go on once it has written
};

value execute_command(context& ctx, arguments args);
/// May throw undeclared_key.
value execute_in_script(context& ctx, arguments args, script_run& run);

}  // namespace holdfast::sim
