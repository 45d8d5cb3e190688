// Which commands and keys that locks need are closed to this user.
//
// Nothing is run: the commands are queued in a MULTI that is discarded. The server checks a command's rights when
// it queues it, so every answer but QUEUED tells something. Which commands there are to check is read from the
// scripts themselves. A member of a Cluster looks at rights before it looks at whose the key is.
#pragma once

#include "cli/inspect/server_survey.hpp"

namespace holdfast::cli {

struct rights_probe {
    std::vector<missing_right> missing;
    std::optional<std::string> unprobed;  // why it could not be done
};

rights_probe probe_rights(const client& server, const survey_terms& terms);

}  // namespace holdfast::cli
