// Helpers of URL parsing: percent escapes, and error messages without secrets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis/url/server_url.hpp"

namespace holdfast::redis {

/// None if a '%' is not followed by two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

/// Encodes all but letters, digits, '-', '.', '_', '~' and the characters of `also_plain`.
std::string percent_encode(std::string_view text, std::string_view also_plain);

/// Digits only, and no more than `largest`.
std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t largest) noexcept;

/// The address of another server, as a server tells it; none if the host cannot be a name or an address, or the port is
/// out of range. The client connects to it and shows it in messages and logs.
std::optional<server_address> told_address(std::string_view host, std::optional<std::int64_t> port);

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
