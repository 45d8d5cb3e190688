// SHA-1 (RFC 3174): by this a server names its scripts. Nothing else of a cryptographic library is needed here.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::sim {

// Forty lower-case hexadecimal digits.
std::string sha1_hex(std::string_view text);

}  // namespace holdfast::sim
