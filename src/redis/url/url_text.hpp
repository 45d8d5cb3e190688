// Helpers of URL parsing: percent escapes, and error messages without secrets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

/// None if a '%' is not followed by two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

/// Encodes all but letters, digits, '-', '.', '_', '~' and the characters of `also_plain`.
std::string percent_encode(std::string_view text, std::string_view also_plain);

/// Digits only, and no more than `largest`.
std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t largest) noexcept;

/// True for a name or an address. A server sends it; the client connects to it and shows it in messages and logs.
bool may_be_host(std::string_view text) noexcept;

/// The URL that is parsed. Its error messages show no secret.
class examined_url {
public:
    explicit examined_url(std::string_view text);

    /// Throws holdfast::error, errc::bad_url: `why`, and the redacted URL.
    [[noreturn]] void refuse(const std::string& why) const;

    /// A piece of the URL in quotes, if the redacted URL shows it, too; otherwise "***".
    std::string quote(std::string_view piece) const;

    /// percent_decode, or refuses. `what` names the part, as in "the password".
    std::string decode(std::string_view what, std::string_view piece) const;

private:
    std::string shown_;
};

}  // namespace holdfast::redis
