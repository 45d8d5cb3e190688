// Durations as people write them: a number and its unit, `500ms`, `1.5s`, `2m`, `1h`.
//
// A bare number is refused, because half of the readers take it for seconds and the other half for
// milliseconds. So is whatever is not a whole number of milliseconds: rounding would turn `0.1ms` into "no
// time at all".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

/// Nothing if `text` is not digits, perhaps a fraction, and one of ms, s, m, h; or does not fit.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) noexcept;

/// The shortest of those forms; for all that is not negative, parse_duration gives the same value back.
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace holdfast::redis
