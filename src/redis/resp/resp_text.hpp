// The small grammars of RESP: what a line may contain. They accept only what Redis sends: anything else shows that the
// stream is out of step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::redis {

inline bool is_resp_type_byte(char byte) noexcept {
    constexpr std::string_view types = ":$*_+-,#!=(%~>|";  // the most frequent first
    return std::find(types.begin(), types.end(), byte) != types.end();
}

/// A decimal integer in its only form: no plus, no leading zero, no "-0", nothing around it, within 64 bits.
bool parse_resp_integer(std::string_view text, std::int64_t& out) noexcept;

/// A finite double as printf or fpconv write it, or inf, -inf, nan, -nan.
bool is_resp_double(std::string_view text) noexcept;

/// Digits, perhaps after a minus.
bool is_resp_big_number(std::string_view text) noexcept;

/// The first 32 bytes in quotes, printable, with "..." if there were more.
std::string quote_resp_excerpt(std::string_view bytes);

}  // namespace holdfast::redis
