// What on a server endangers locks.
//
// Two steps: a survey asks the server everything, then every check draws its conclusion from the survey alone. What may
// not be asked (managed servers forbid CONFIG) is a warning. Of a Cluster every primary is surveyed, and then all of
// them as one node.
#pragma once

#include "cli/doctor/server_survey.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

enum class severity { fine, warning, danger };

struct finding {
    std::string check;  // one word, the same in every version
    severity how_bad = severity::fine;
    std::string what;     // what was found
    std::string meaning;  // for locks; empty if all is well
    std::string fix;
};

finding fine(const char* check, std::string what);
// What may not be asked may be wrong.
finding unknown(const char* check, const char* what);

std::vector<finding> examine(const server_survey& survey);
// Of a server that refused the survey: what that tells about it, if anything.
std::optional<finding> examine(const error& why);

// One server of those that are examined.
struct patient {
    bool answers() const noexcept { return survey.has_value(); }

    std::string server;
    std::optional<server_survey> survey;  // none: it did not answer, or refused
    std::vector<finding> findings = {};
};

// One node: a server, or a Cluster with its primaries.
struct surveyed_node {
    bool answers() const noexcept;

    std::string server;
    std::vector<patient> patients;
    std::vector<finding> as_a_whole = {};  // of a Cluster
};

// What endangers locks on several nodes though each of them is well. At least one answers.
std::vector<finding> examine_together(const std::vector<surveyed_node>& all, std::chrono::milliseconds max_lease);

// The same for the primaries of a Cluster.
std::vector<finding> examine_cluster(const std::vector<patient>& primaries);

}  // namespace holdfast::cli
