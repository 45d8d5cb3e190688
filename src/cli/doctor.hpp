// What on a server endangers locks.
//
// Two steps: a survey asks the server all there is to ask, then every check draws its conclusion from the survey
// alone. What may not be asked (managed servers forbid CONFIG) is said, as a warning, never taken for good.
#pragma once

#include "cli/server_survey.hpp"

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

std::vector<finding> examine(const server_survey& survey);
// One server of those that are examined.
struct patient {
    bool answers() const noexcept { return survey.has_value(); }

    std::string server;
    std::optional<server_survey> survey;  // none: it did not answer, or would not have us
    std::vector<finding> findings = {};
};

// What endangers locks on several servers though each of them is well. At least one answers.
std::vector<finding> examine_together(const std::vector<patient>& all, std::chrono::milliseconds max_lease);

// Of a server that would not have us: what that tells about it, if anything.
std::optional<finding> examine(const error& why);

}  // namespace holdfast::cli
