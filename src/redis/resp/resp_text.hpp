// The small grammars of RESP: what may stand on a line. As narrow as what Redis sends, because whatever else
// arrives is the sign of a stream that is out of step.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::redis {

namespace detail {

constexpr std::array<bool, 256> resp_type_bytes() {
    std::array<bool, 256> known{};
    for (const char type : std::string_view{"+-:$*_,#!=(%~>|"}) known[static_cast<unsigned char>(type)] = true;
    return known;
}
inline constexpr std::array<bool, 256> known_resp_type_bytes = resp_type_bytes();

}  // namespace detail

inline bool is_resp_type_byte(char byte) noexcept {
    return detail::known_resp_type_bytes[static_cast<unsigned char>(byte)];
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
