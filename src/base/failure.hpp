// Why something failed: a code for programs and a sentence for people.
#pragma once

#include <holdfast/errors.hpp>

#include <string>

namespace holdfast {

struct failure {
    errc code = errc::server_error;
    std::string detail;  // names the server; never contains a secret
};

}  // namespace holdfast
