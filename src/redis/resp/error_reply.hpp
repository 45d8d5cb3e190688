// Puts a server's error reply into our own words.
#pragma once

#include "base/failure.hpp"

#include <string_view>

namespace holdfast::redis {

// `text` is the error without its leading '-'. The detail is "<server>: <text>", with unprintable bytes
// replaced and cut to a sane length: it comes from the peer, and ends in somebody's log.
failure classify_error(std::string_view text, std::string_view server);

// True for refusals that no retry will cure: wrong password, wrong certificate, too old, not Redis.
bool is_permanent(errc code) noexcept;

// True if the link that gave this answer is of no more use: it must be greeted anew, or is not a primary.
bool spoils_link(errc code) noexcept;

}  // namespace holdfast::redis
