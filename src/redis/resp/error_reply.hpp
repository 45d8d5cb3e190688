// Maps the error reply of a server to an errc.
#pragma once

#include "base/errc_table.hpp"

#include <string_view>

namespace holdfast::redis {

// `text` is the error without its leading '-'. The detail is "<server>: <text>", with unprintable bytes replaced and
// truncated: it comes from the peer and may be logged.
failure classify_error(std::string_view text, std::string_view server);

}  // namespace holdfast::redis
