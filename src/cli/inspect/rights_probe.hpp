// Which commands and keys that locks need are closed to this user.
//
// Nothing runs: the commands are queued in a MULTI that is discarded. The server checks the rights of a command when it
// queues it, so every answer but QUEUED tells something. The probe tries exactly what the library sends: its own list,
// which a test compares with the sources, and the commands that it finds in the scripts. A member of a Cluster checks
// rights before it checks who owns the key.
#pragma once

#include "cli/inspect/server_survey.hpp"

#include <set>

namespace holdfast::cli {

struct rights_probe {
    std::vector<missing_right> missing;
    std::optional<std::string> unprobed;  // why it could not be done
};

rights_probe probe_rights(const client& server, const survey_terms& terms);

// The commands, with their subcommands, that the probe tries beside those of the scripts.
std::set<std::string> probed_commands(server_kind kind);

}  // namespace holdfast::cli
