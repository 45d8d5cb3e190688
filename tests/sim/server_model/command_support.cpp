// Helpers of all handlers: error texts, word comparison, globs.

#include <algorithm>

#include "server_model/command.hpp"

namespace holdfast::sim {

value wrong_type_error() {
    return value::make_error("WRONGTYPE Operation against a key holding the wrong kind of value");
}
value syntax_error() {
    return value::make_error("ERR syntax error");
}
value not_an_integer_error() {
    return value::make_error("ERR value is not an integer or out of range");
}
value not_a_float_error() {
    return value::make_error("ERR value is not a valid float");
}

value arity_error(std::string_view command_name) {
    return value::make_error("ERR wrong number of arguments for '" + std::string{command_name} + "' command");
}

value expire_time_error(std::string_view command_name) {
    return value::make_error("ERR invalid expire time in '" + std::string{command_name} + "' command");
}

value integer_reply(std::size_t count) {
    return value::make_integer(static_cast<std::int64_t>(count));
}
value bulk_reply(std::string_view text) {
    return value::make_bulk(std::string{text});
}

namespace {
char lowered(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Matches one [class]; moves `pattern` past it. An unclosed class ends with the pattern, as in Redis.
bool class_matches(std::string_view& pattern, char c) {
    pattern.remove_prefix(1);
    const bool negated = !pattern.empty() && pattern.front() == '^';
    if (negated) pattern.remove_prefix(1);
    bool hit = false;
    while (!pattern.empty() && pattern.front() != ']') {
        if (pattern.front() == '\\' && pattern.size() >= 2) {
            pattern.remove_prefix(1);
            hit |= pattern.front() == c;
        } else if (pattern.size() >= 3 && pattern[1] == '-') {
            const auto [low, high] = std::minmax(pattern[0], pattern[2]);
            hit |= c >= low && c <= high;
            pattern.remove_prefix(2);
        } else {
            hit |= pattern.front() == c;
        }
        pattern.remove_prefix(1);
    }
    if (!pattern.empty()) pattern.remove_prefix(1);
    return hit != negated;
}
}  // namespace

bool same_word(std::string_view given, std::string_view lower_case_word) {
    return std::equal(given.begin(), given.end(), lower_case_word.begin(), lower_case_word.end(),
                      [](char a, char b) { return lowered(a) == b; });
}

std::string lower_case(std::string_view text) {
    std::string out{text};
    std::transform(out.begin(), out.end(), out.begin(), lowered);
    return out;
}

bool glob_matches(std::string_view pattern, std::string_view name) {
    while (!pattern.empty()) {
        if (pattern.front() == '*') {
            pattern.remove_prefix(1);
            for (std::size_t skip = 0; skip <= name.size(); ++skip) {
                if (glob_matches(pattern, name.substr(skip))) return true;
            }
            return false;
        }
        if (name.empty()) return false;
        if (pattern.front() == '[') {
            if (!class_matches(pattern, name.front())) return false;
        } else {
            if (pattern.front() == '\\' && pattern.size() >= 2) {
                pattern.remove_prefix(1);
            } else if (pattern.front() == '?') {
                pattern.remove_prefix(1);
                name.remove_prefix(1);
                continue;
            }
            if (pattern.front() != name.front()) return false;
            pattern.remove_prefix(1);
        }
        name.remove_prefix(1);
    }
    return name.empty();
}

}  // namespace holdfast::sim
