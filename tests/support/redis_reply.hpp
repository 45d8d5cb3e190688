// A reply of redis-server as a plain value.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace holdfast::testing {

struct redis_reply {
    enum class type { nil, status, error, integer, string, array };

    type kind = type::nil;
    std::string text{};                   // of a status, error or string
    std::int64_t integer = 0;             // of an integer
    std::vector<redis_reply> elements{};  // of an array

    bool is_nil() const noexcept { return kind == type::nil; }
    bool is_error() const noexcept { return kind == type::error; }
};

bool operator==(const redis_reply& left, const redis_reply& right);

/// As redis-cli would show it, for messages of failing tests.
std::ostream& operator<<(std::ostream& out, const redis_reply& reply);

}  // namespace holdfast::testing
