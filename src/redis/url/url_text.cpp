// Quotes only what the redacted text shows: what the grammar calls an option may be half of a password that contains a
// bare '?'.
#include "redis/url/url_text.hpp"

#include <algorithm>
#include <holdfast/errors.hpp>
#include <limits>

#include "redis/resp/characters.hpp"
#include "redis/url/secret.hpp"

namespace holdfast::redis {
namespace {

constexpr std::string_view hex = "0123456789ABCDEF";

char hex_value(char digit) {
    const char upper = digit >= 'a' ? static_cast<char>(digit - 'a' + 'A') : digit;
    return static_cast<char>(hex.find(upper));
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());  // never reallocates: no half-decoded password stays on the heap
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            plain.push_back(text[i]);
            continue;
        }
        if (text.size() - i < 3 || !is_hex_digit(text[i + 1]) || !is_hex_digit(text[i + 2])) {
            wipe(plain);
            return std::nullopt;
        }
        plain.push_back(static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2])));
        i += 2;
    }
    return plain;
}

std::string percent_encode(std::string_view text, std::string_view also_plain) {
    std::string encoded;
    for (const char c : text) {
        const bool unreserved = is_letter(c) || is_digit(c) || std::string_view("-._~").find(c) != text.npos;
        if (unreserved || also_plain.find(c) != also_plain.npos) {
            encoded.push_back(c);
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        encoded.append({'%', hex[byte / 16], hex[byte % 16]});
    }
    return encoded;
}

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t largest) noexcept {
    const auto value = number_in<std::uint32_t>(text);
    return value && *value <= largest ? value : std::nullopt;
}

std::optional<server_address> told_address(std::string_view host, std::optional<std::int64_t> port) {
    constexpr std::size_t longest_name = 253;
    const bool may_be_host = !host.empty() && host.size() <= longest_name &&
                             std::ranges::all_of(host, [](char c) { return c > ' ' && c <= '~'; });
    const bool is_port = port && *port >= 1 && *port <= std::numeric_limits<std::uint16_t>::max();
    if (!may_be_host || !is_port) return std::nullopt;
    return server_address{std::string(host), static_cast<std::uint16_t>(*port)};
}

examined_url::examined_url(std::string_view text) : shown_(redact(text)) {}

void examined_url::refuse(const std::string& why) const {
    throw error(errc::bad_url, "\"" + shown_ + "\": " + why);
}

std::string examined_url::quote(std::string_view piece) const {
    const bool visible = shown_.find(piece) != std::string::npos;
    return "\"" + std::string(visible ? piece : "***") + "\"";
}

std::string examined_url::decode(std::string_view what, std::string_view piece) const {
    if (auto plain = percent_decode(piece)) return std::move(*plain);
    refuse("bad percent escape in " + std::string(what) + ": '%' needs two hex digits after it, and '%' itself is %25");
}

}  // namespace holdfast::redis
