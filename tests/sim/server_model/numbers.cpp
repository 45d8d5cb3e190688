#include "server_model/numbers.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace holdfast::sim {
namespace {

// Exactly representable as a double.
bool is_exact(std::int64_t number) {
    constexpr std::int64_t limit = std::int64_t{1} << 53;
    return number > -limit && number < limit;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
    if (text.empty() || text.size() > 20) return std::nullopt;
    const std::string_view digits = text.front() == '-' ? text.substr(1) : text;
    if (digits.empty()) return std::nullopt;
    if (digits.front() == '0' && text.size() > 1) return std::nullopt;  // 007 and -0
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<double> parse_score(std::string_view text) {
    // Most scores are integers; strtod needs a copy and is slow.
    if (const auto integer = parse_integer(text); integer && is_exact(*integer)) {
        return static_cast<double>(*integer);
    }
    if (text.empty() || std::isspace(static_cast<unsigned char>(text.front())) != 0) return std::nullopt;
    const std::string copy{text};
    char* end = nullptr;
    errno = 0;
    const double number = std::strtod(copy.c_str(), &end);
    if (end != copy.c_str() + copy.size() || std::isnan(number)) return std::nullopt;
    if (errno == ERANGE && (std::isinf(number) || std::fpclassify(number) == FP_ZERO)) return std::nullopt;
    return number;
}

std::optional<score_bound> parse_score_bound(std::string_view text) {
    score_bound bound;
    if (!text.empty() && text.front() == '(') {
        bound.at = score_bound::edge::excluded;
        text.remove_prefix(1);
    }
    if (const auto integer = parse_integer(text); integer && is_exact(*integer)) {
        bound.score = static_cast<double>(*integer);
        return bound;
    }
    const std::string copy{text};
    char* end = nullptr;
    bound.score = std::strtod(copy.c_str(), &end);
    if (*end != '\0' || std::isnan(bound.score)) return std::nullopt;
    return bound;
}

std::string format_double(double number) {
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    constexpr double exact = 9007199254740992;  // 2^53
    if (std::abs(number) < exact && std::trunc(number) == number && !(number == 0 && std::signbit(number))) {
        return std::to_string(static_cast<std::int64_t>(number));
    }
    std::array<char, 40> text{};
    const int length = std::snprintf(text.data(), text.size(), "%.17g", number);
    return {text.data(), static_cast<std::size_t>(length)};
}

std::int64_t truncate_to_integer(double number) {
    constexpr double limit = 9223372036854775808.0;
    if (!(number >= -limit && number < limit)) return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(number);
}

}  // namespace holdfast::sim
