// Reads and writes numbers as redis-server 7.0 does.
//
// Integers are strict (no sign but '-', no leading zero, no space); scores are what strtod accepts; a bound of a score
// range accepts even more (an empty bound is zero). Scripts can see each of these differences, so each is modelled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::sim {

std::optional<std::int64_t> parse_integer(std::string_view text);

/// A score given to ZADD: no leading space, no NaN, no overflow.
std::optional<double> parse_score(std::string_view text);

/// One end of a score range, "(" in front of it meaning "not included".
struct score_bound {
    double score = 0;
    enum class edge : std::uint8_t { included, excluded } at = edge::included;
};
std::optional<score_bound> parse_score_bound(std::string_view text);

/// "%.17g", with inf and -inf spelled so: the form of scores in replies and of Lua numbers passed to redis.call.
std::string format_double(double number);

/// A double as a reply integer: truncated, and out of range as on x86.
std::int64_t truncate_to_integer(double number);

}  // namespace holdfast::sim
