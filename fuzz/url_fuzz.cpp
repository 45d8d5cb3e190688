// Any bytes as a URL: parsed or refused with holdfast::error, never a crash, and the password nowhere to be seen.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <holdfast/errors.hpp>
#include <string>
#include <string_view>

#include "redis/url/duration.hpp"
#include "redis/url/server_url.hpp"

namespace {

using namespace holdfast::redis;

void require(bool rule, const char* what) {
    if (rule) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

// In a URL that was accepted the user info ends at the last '@' in front of path and query. What is shown of
// the URL must not depend on it: but for hiding everything, it is what would be shown with any other user and password.
void check_redacted(std::string_view url) {
    const std::size_t begin = url.find("://") + 3;
    const std::size_t end = url.substr(0, url.find_first_of("/?", begin)).rfind('@');
    if (end == url.npos) return;
    const std::string scheme(url.substr(0, begin));
    const std::string shown = redact(url);
    const std::string other = redact(scheme + "x:y" + std::string(url.substr(end)));
    require(shown == other || shown == scheme + "***", "redact() hides user and password");
}

// Likewise for display(). Searching it for the password would not do: "6379" is a password too.
void check_displayed(const server_settings& settings) {
    server_settings other = settings;
    other.password = secret("another");
    require(settings.display() == other.display(), "display() hides the password");
}

void check_accepted(std::string_view url, const server_settings& settings) {
    require(settings.port != 0, "a port is not 0");
    require(settings.backoff_min <= settings.backoff_max, "backoff_min <= backoff_max");
    require(settings.connect_timeout.count() > 0 && settings.request_timeout.count() > 0, "timeouts are positive");
    // Unless its user has no password in front of '@', which is refused, what is displayed is itself a URL.
    if (settings.user.empty()) {
        const server_settings again = parse_url(settings.display());
        require(again.display() == settings.display(), "what is displayed parses to the same server");
    }
    check_displayed(settings);
    check_redacted(url);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view url(reinterpret_cast<const char*>(data), size);
    const std::string once = redact(url);
    require(redact(once) == once, "redact() is idempotent");

    if (const auto duration = parse_duration(url)) {
        require(parse_duration(format_duration(*duration)) == duration, "a duration survives being formatted");
    }

    if (url.find("password_file") != url.npos) return 0;  // would open whatever file the fuzzer thinks of
    try {
        check_accepted(url, parse_url(url));
    } catch (const holdfast::error& problem) {
        require(problem.condition() == holdfast::errc::bad_url, "refused as a bad URL");
        require(std::string_view(problem.what()).find(once) != std::string_view::npos, "the message shows the URL");
    }
    return 0;
}
