// The options behind the '?' of a server URL.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "redis/url/server_url.hpp"
#include "redis/url/url_text.hpp"

namespace holdfast::redis {

/// Construction splits the query and refuses unknown or repeated names. apply() reads the values.
class url_options {
public:
    /// Both arguments must outlive the object. `query` is without its '?'.
    url_options(const examined_url& url, std::string_view query);

    bool has(std::string_view name) const { return given_.contains(name); }

    /// Writes the values into `settings`, which already has the rest of the URL.
    void apply(server_settings& settings) const;

private:
    enum class whom { server, sentinels };

    void apply(server_settings& settings, whom for_whom) const;
    void add(std::string_view item);
    void require_whole_certificate(const std::string& whose) const;

    const examined_url& url_;
    std::map<std::string_view, std::string_view> given_;  // name -> value, not yet decoded
};

/// True if a URL may have an option of this name.
bool is_known_option(std::string_view name) noexcept;

/// Refuses control characters: the value is used in logs, commands and C strings.
void require_printable(const examined_url& url, std::string_view what, std::string_view value);

}  // namespace holdfast::redis
