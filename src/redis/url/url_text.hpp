// The small change of URL parsing: percent escapes, and complaints that give nothing away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

std::string to_lower(std::string_view text);

/// Nothing if a '%' is not followed by two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

/// Encodes all but letters, digits, '-', '.', '_', '~' and what `also_plain` lists.
std::string percent_encode(std::string_view text, std::string_view also_plain);

/// Digits only, and no more than `largest`.
std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t largest) noexcept;

/// A name or an address, as a server tells it. It is connected to, and shown in messages and logs, so nothing else may
/// be in it.
bool may_be_host(std::string_view text) noexcept;

/// The URL being parsed: complains about itself without showing a secret.
class examined_url {
public:
    explicit examined_url(std::string_view text);

    /// Throws holdfast::error, errc::bad_url: `why`, and the redacted URL.
    [[noreturn]] void refuse(const std::string& why) const;

    /// A piece of the URL in quotes, if the redacted URL shows it too; else "***".
    std::string quote(std::string_view piece) const;

    /// percent_decode, or refuses. `what` names the part, as in "the password".
    std::string decode(std::string_view what, std::string_view piece) const;

private:
    std::string shown_;
};

}  // namespace holdfast::redis
