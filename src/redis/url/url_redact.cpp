// Hides passwords in text that may not be a URL.
//
// The hard cases are mistakes: a password with a bare '@', '/', '?' or '&', a missing '@host', a mistyped scheme. A
// parser that follows the grammar cuts such a password in two and shows one half. So this code hides the largest range
// that could contain a password:
//  (1) from an option that sounds like a password to the end of the text (its value may contain a bare '&');
//  (2) from the scheme to the last '@' anywhere (or, without any, to the last "%40" before the query);
//  (3) from a ':' that no port follows to the end: `redis://user:password` without a host. Where several hosts may be
//      named, each of them is treated so;
//  (4) from the value of the first unknown option to the end: its purpose is unknown.
// If (1) hides an '@', (1) and (2) cannot be distinguished and everything is hidden.
//
// Each step does not change its own output, so redact() is idempotent.
#include <algorithm>
#include <array>

#include "redis/resp/characters.hpp"
#include "redis/url/server_url.hpp"
#include "redis/url/url_options.hpp"
#include "redis/url/url_text.hpp"

namespace holdfast::redis {
namespace {

constexpr std::string_view hidden = "***";

bool sounds_secret(std::string_view segment) {
    const std::string_view name = segment.substr(0, segment.find('='));
    constexpr std::array harmless{"password_file", "password_env", "sentinel_password_file", "sentinel_password_env"};
    if (std::ranges::find(harmless, name) != harmless.end())
        return false;  // tells where the password is, not what it is
    const std::string plain = to_lower(percent_decode(name).value_or(std::string(name)));
    constexpr std::array words{"pass", "pwd", "secret", "auth", "token", "credential"};
    return std::ranges::any_of(words, [&](const char* word) { return plain.find(word) != std::string::npos; });
}

// Start of the first option that sounds like a secret; npos if there is none.
std::size_t find_secret_option(std::string_view text) {
    constexpr std::string_view separators = "?&;";
    for (std::size_t at = text.find_first_of(separators); at != text.npos;) {
        const std::size_t next = text.find_first_of(separators, at + 1);
        if (sounds_secret(text.substr(at + 1, next - at - 1))) return at + 1;
        at = next;
    }
    return text.npos;
}

// "password=", if the option begins in a form that no later step can cut in two; otherwise empty.
std::string_view name_to_keep(std::string_view option) {
    const std::size_t equals = option.find('=');
    if (equals == option.npos) return {};
    const bool plain = std::ranges::all_of(option.substr(0, equals),
                                           [](char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-'; });
    return plain ? option.substr(0, equals + 1) : std::string_view{};
}

// "redis://" and the like; empty if the text does not begin with a scheme.
std::string_view scheme_of(std::string_view text) {
    const std::size_t end = text.find("://");
    if (end == text.npos || end == 0) return {};
    const bool plain = std::ranges::all_of(
        text.substr(0, end), [](char c) { return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.'; });
    return plain ? text.substr(0, end + 3) : std::string_view{};
}

// Length of the front part of `text` that may be user name and password, including the '@'.
std::size_t userinfo_size(std::string_view text) {
    if (const std::size_t at = text.rfind('@'); at != text.npos) return at + 1;
    const std::size_t encoded = text.substr(0, text.find('?')).rfind("%40");
    return encoded == text.npos ? 0 : encoded + 3;
}

// `text` without the value of the first unknown option and what follows it.
std::string hide_unknown_options(std::string_view text) {
    for (std::size_t at = text.find('?'); at != text.npos; at = text.find('&', at + 1)) {
        const std::string_view option = text.substr(at + 1, text.find('&', at + 1) - at - 1);
        if (option.empty() || is_known_option(option.substr(0, option.find('=')))) continue;
        return std::string(text.substr(0, at + 1)).append(name_to_keep(option)).append(hidden);
    }
    return std::string(text);
}

bool is_port(std::string_view text) {
    return !text.empty() && text.size() <= 5 && std::ranges::all_of(text, is_digit);
}

// host[:port] and what follows, cut after a ':' that no port follows.
std::string hide_after_host(std::string_view text) {
    const std::string_view authority = text.substr(0, text.find_first_of("/?#"));
    std::size_t host_end = 0;
    if (authority.starts_with('[')) {
        host_end = authority.find(']');
        const bool address = host_end != authority.npos &&
                             std::ranges::all_of(authority.substr(1, host_end - 1),
                                                 [](char c) { return is_hex_digit(c) || c == ':' || c == '.'; });
        if (!address) return std::string(hidden);
        ++host_end;
    }
    const std::size_t colon = authority.find(':', host_end);
    if (colon == authority.npos) return std::string(text);
    if (colon == 0) return std::string(hidden);
    if (is_port(authority.substr(colon + 1))) return std::string(text);
    return std::string(text.substr(0, colon + 1)).append(hidden);
}

// host[:port] and nothing else.
bool is_plain_address(std::string_view text) {
    const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
    if (bracket == text.npos) return false;
    const std::size_t colon = text.find(':', bracket);
    const std::string_view host = text.substr(0, colon);
    const bool plain = std::ranges::all_of(host, [&](char c) {
        return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' ||
               (bracket != 0 && (c == '[' || c == ':' || c == ']'));
    });
    return plain && !host.empty() && (colon == text.npos || is_port(text.substr(colon + 1)));
}

// The same for several servers, separated by commas.
std::string hide_after_hosts(std::string_view text) {
    std::size_t shown = 0;
    for (std::size_t comma = text.find_first_of(",/?#"); comma != text.npos && text[comma] == ',';) {
        if (!is_plain_address(text.substr(shown, comma - shown))) break;
        shown = comma + 1;
        comma = text.find_first_of(",/?#", shown);
    }
    return std::string(text.substr(0, shown)) + hide_after_host(text.substr(shown));
}

}  // namespace

std::string redact(std::string_view url) {
    std::string clean(url);
    std::ranges::replace_if(clean, is_control, '_');
    std::string_view text = clean;
    const std::string_view scheme = scheme_of(text);
    text.remove_prefix(scheme.size());

    std::string kept(text);
    if (const std::size_t option = find_secret_option(text); option != text.npos) {
        if (text.find('@', option) != text.npos) return std::string(scheme).append(hidden);
        kept = std::string(text.substr(0, option)).append(name_to_keep(text.substr(option))).append(hidden);
    }
    const std::size_t userinfo = userinfo_size(kept);
    std::string shown(scheme);
    if (userinfo != 0) shown.append(hidden).append("@");
    const std::string rest = hide_unknown_options(std::string_view(kept).substr(userinfo));
    const std::string kind = to_lower(scheme);
    const bool has_several = kind.ends_with("+sentinel://") || kind.ends_with("+cluster://");
    return shown.append(has_several ? hide_after_hosts(rest) : hide_after_host(rest));
}

}  // namespace holdfast::redis
