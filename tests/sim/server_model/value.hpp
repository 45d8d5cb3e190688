// A reply as a value: what RESP2 can express and EVAL can return.
//
// The simulator passes replies around, stores them in traces and compares them with a real server's. So a reply is
// copyable, comparable and printable. Errors carry their code and text without the leading '-'; doubles are bulk
// strings, as on RESP2.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sim {

struct value {
    enum class kind : std::uint8_t { nil, status, error, integer, bulk, array };

    kind type = kind::nil;
    std::int64_t integer = 0;
    std::string text;  // status, error or bulk
    std::vector<value> items;

    static value make_nil() { return {}; }
    static value make_status(std::string text) { return {kind::status, 0, std::move(text), {}}; }
    /// As a server sends it: line breaks become spaces, trailing ones are removed.
    static value make_error(std::string_view text);
    static value make_integer(std::int64_t number) { return {kind::integer, number, {}, {}}; }
    static value make_bulk(std::string text) { return {kind::bulk, 0, std::move(text), {}}; }
    static value make_array(std::vector<value> items) { return {kind::array, 0, {}, std::move(items)}; }

    bool is_error() const { return type == kind::error; }
    bool operator==(const value&) const = default;

    /// One line, as redis-cli would put it: (nil), +OK, -ERR ..., :1, "text", [a, b].
    std::string to_string() const;
};

/// For test assertions.
std::ostream& operator<<(std::ostream& out, const value& v);

/// Quotes text and escapes everything unprintable, so that dumps are plain lines.
std::string in_quotes(std::string_view text);

/// The text of an error or status: one line.
std::string on_one_line(std::string_view text);

}  // namespace holdfast::sim
