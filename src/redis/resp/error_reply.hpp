// Puts a server's error reply into our own words.
#pragma once

#include "base/errc_table.hpp"
#include "base/failure.hpp"

#include <string_view>

namespace holdfast::redis {

// `text` is the error without its leading '-'. The detail is "<server>: <text>", with unprintable bytes
// replaced and cut to a sane length: it comes from the peer, and ends in somebody's log.
failure classify_error(std::string_view text, std::string_view server);

}  // namespace holdfast::redis
