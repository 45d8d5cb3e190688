// Maps the error reply of a server to an errc.
#pragma once

#include "base/failure.hpp"

#include <string_view>

namespace holdfast::redis {

// `text` is the error without its leading '-'. The detail is "<server>: <text>", with unprintable bytes replaced and
// truncated: it comes from the peer and may be logged.
failure classify_error(std::string_view text, std::string_view server);

// True for refusals that no retry can cure: wrong password, wrong certificate, too old, not Redis.
bool is_permanent(errc code) noexcept;

// True if the link with this answer cannot be used any more: it needs a new greeting, or is not to a primary.
bool spoils_link(errc code) noexcept;

}  // namespace holdfast::redis
