// Durations as people write them: a number and its unit, `500ms`, `1.5s`, `2m`, `1h`.
//
// A bare number is refused: some readers take it for seconds, others for milliseconds. So is a fraction of a
// millisecond: rounding would turn `0.1ms` into zero.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

/// None if `text` is not digits, perhaps a fraction, and one of ms, s, m, h, or if the value does not fit.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) noexcept;

/// The shortest of those forms. parse_duration() reads the same value from it, if it is not negative.
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace holdfast::redis
