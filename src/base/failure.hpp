// Why something did not work: the kind, for programs, and a sentence, for people.
#pragma once

#include <holdfast/errors.hpp>

#include <string>

namespace holdfast {

struct failure {
    errc code = errc::server_error;
    std::string detail;  // names the server; never holds a secret
};

}  // namespace holdfast
