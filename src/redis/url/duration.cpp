// Integers only: 1.1 has no exact binary form.
#include "redis/url/duration.hpp"

#include "redis/resp/characters.hpp"

#include <cstdint>

namespace holdfast::redis {
namespace {

constexpr std::int64_t second = 1000;
constexpr std::int64_t minute = 60 * second;
constexpr std::int64_t hour = 60 * minute;

// An hour is 3 600 000 = 2^7 * 3^2 * 5^5 ms: a fraction of more than 7 digits, the last not 0, is never whole.
constexpr std::size_t max_fraction_digits = 7;

std::optional<std::int64_t> unit_of(std::string_view name) noexcept {
    if (name == "ms") return 1;
    if (name == "s") return second;
    if (name == "m") return minute;
    if (name == "h") return hour;
    return std::nullopt;
}

// Removes the digits at the front of `text` and returns them.
std::string_view take_digits(std::string_view& text) noexcept {
    std::size_t count = 0;
    while (count < text.size() && is_digit(text[count])) ++count;
    const std::string_view digits = text.substr(0, count);
    text.remove_prefix(count);
    return digits;
}

// What `0.digits` of a unit is, if it is whole.
std::optional<std::int64_t> fraction_of(std::int64_t unit, std::string_view digits) noexcept {
    while (!digits.empty() && digits.back() == '0') digits.remove_suffix(1);
    if (digits.size() > max_fraction_digits) return std::nullopt;
    std::int64_t scale = 1;
    for (std::size_t i = 0; i < digits.size(); ++i) scale *= 10;
    const std::int64_t scaled = number_in<std::int64_t>(digits).value_or(0) * unit;  // below 10^7 * 3.6 * 10^6: fits
    if (scaled % scale != 0) return std::nullopt;
    return scaled / scale;
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) noexcept {
    const std::string_view whole = take_digits(text);
    if (whole.empty()) return std::nullopt;
    std::string_view fraction;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        fraction = take_digits(text);
        if (fraction.empty()) return std::nullopt;
    }
    const auto unit = unit_of(text);
    const auto count = number_in<std::int64_t>(whole);
    if (!unit || !count) return std::nullopt;
    const auto part = fraction_of(*unit, fraction);
    std::int64_t total = 0;
    if (!part || __builtin_mul_overflow(*count, *unit, &total) || __builtin_add_overflow(total, *part, &total)) {
        return std::nullopt;
    }
    return std::chrono::milliseconds{total};
}

std::string format_duration(std::chrono::milliseconds duration) {
    const std::int64_t count = duration.count();
    if (count != 0 && count % hour == 0) return std::to_string(count / hour) + "h";
    if (count != 0 && count % minute == 0) return std::to_string(count / minute) + "m";
    if (count != 0 && count % second == 0) return std::to_string(count / second) + "s";
    if (count > -second && count < second) return std::to_string(count) + "ms";
    const std::int64_t rest = count % second < 0 ? -(count % second) : count % second;
    std::string digits = std::to_string(second + rest).substr(1);  // with its leading zeros
    while (digits.back() == '0') digits.pop_back();
    return std::to_string(count / second) + "." + digits + "s";
}

}  // namespace holdfast::redis
