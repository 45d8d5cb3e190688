// Puts a single question to the server, outside of any lock operation.
#pragma once

#include <holdfast/client.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// A reply, copied out of the connection's buffer.
struct answer {
    bool is_null = false;
    std::string text;                     // of strings
    std::optional<std::int64_t> integer;  // of integers, and of strings that are one
    std::vector<answer> items;            // of arrays and the like
};

// Throws holdfast::error with what the server said, or why it could not be asked.
answer ask(const client& server, std::initializer_list<std::string_view> command);

}  // namespace holdfast::cli
