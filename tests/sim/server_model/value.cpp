#include "server_model/value.hpp"

#include <array>
#include <cstdio>
#include <ostream>

namespace holdfast::sim {

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte >= 0x7f) {
            std::array<char, 8> hex{};
            std::snprintf(hex.data(), hex.size(), "\\x%02x", byte);
            out += hex.data();
        } else {
            out += c;
        }
    }
    return out + '"';
}

value value::make_error(std::string_view text) {
    return {kind::error, 0, on_one_line(text), {}};
}

std::string value::to_string() const {
    switch (type) {
        case kind::nil:
            return "(nil)";
        case kind::status:
            return "+" + text;
        case kind::error:
            return "-" + text;
        case kind::integer:
            return ":" + std::to_string(integer);
        case kind::bulk:
            return in_quotes(text);
        case kind::array:
            break;
    }
    std::string out = "[";
    for (const value& item : items) {
        if (out.size() > 1) out += ", ";
        out += item.to_string();
    }
    return out + "]";
}

std::string on_one_line(std::string_view text) {
    const auto is_break = [](char c) { return c == '\r' || c == '\n'; };
    while (!text.empty() && is_break(text.back())) text.remove_suffix(1);
    std::string line{text};
    for (char& c : line) {
        if (is_break(c)) c = ' ';
    }
    return line;
}

std::ostream& operator<<(std::ostream& out, const value& v) {
    return out << v.to_string();
}

}  // namespace holdfast::sim
