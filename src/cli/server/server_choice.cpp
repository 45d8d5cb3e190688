#include "cli/server/server_choice.hpp"

#include "cli/server/config_file.hpp"
#include "cli/server/local_server.hpp"
#include "cli/terminal/system.hpp"
#include "cli/terminal/text.hpp"
#include "redis/url/server_url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

extern char** environ;

namespace holdfast::cli {
namespace {

constexpr std::string_view local_word = "local";

// As HOLDFAST_URL has them.
std::string joined(const std::vector<std::string>& urls) {
    std::string text;
    for (const std::string& url : urls) {
        if (!text.empty()) text += ' ';
        for (const char c : url) text += c == ' ' ? "%20" : std::string(1, c);
    }
    return text;
}

void refuse_password(const std::string& url) {
    const auto settings = redis::parse_url(url);
    if (!has_password(url)) return;
    throw trouble(
        fmt::format("{}: a password on the command line can be read by everybody on this machine; "
                    "put the URL into HOLDFAST_URL, or use ?password_file=PATH or ?password_env=VARIABLE",
                    settings.display()));
}

std::string identity_of(redis::server_settings settings) {
    settings.user.clear();
    if (settings.sentinels) std::ranges::sort(settings.sentinels->addresses);
    std::ranges::sort(settings.seeds);
    return settings.display();
}

std::string identity_of(const std::vector<std::string>& urls) {
    std::vector<std::string> names;
    for (const std::string& url : urls) names.push_back(identity_of(redis::parse_url(url)));
    std::ranges::sort(names);
    if (const auto twin = std::ranges::adjacent_find(names); twin != names.end()) {
        throw trouble(fmt::format("{} is named twice: each server counts once", *twin));
    }
    return joined(names);
}

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

bool is_blank(const std::string& text) {
    return words_of(text).empty();
}

constexpr const char* advice_on_empty =
    "name a server, or say `local` for one of your own, whose locks hold only among your own commands on this machine";

void check_words(const server_words& options) {
    if (options.local && !options.urls.empty()) throw trouble("either --url or --local, not both");
    if (std::ranges::any_of(options.urls, is_blank)) throw trouble(fmt::format("--url is empty; {}", advice_on_empty));
}

// What the options say, else the variable, else the configuration.
std::vector<std::string> named_servers(const server_words& options) {
    if (options.local) return {std::string(local_word)};
    if (!options.urls.empty()) return options.urls;
    const char* const variable = std::getenv("HOLDFAST_URL");
    if (variable == nullptr) return settings().urls;
    std::vector<std::string> named = words_of(std::string(variable));
    if (named.empty()) throw trouble(fmt::format("HOLDFAST_URL is set, but names no server; {}", advice_on_empty));
    return named;
}

bool is_local_word(const std::vector<std::string>& named) {
    return named.size() == 1 && named.front() == local_word;
}

// Warns of variables with our prefix that nothing reads: misspelt, most likely. Not of their values, which may be
// secrets.
void warn_of_unknown_variables() {
    constexpr std::array known{"HOLDFAST_CONFIG",          "HOLDFAST_URL",  "HOLDFAST_MAX_LEASE",
                               "HOLDFAST_FENCE_RETENTION", "HOLDFAST_HOME", "HOLDFAST_NAME",
                               "HOLDFAST_TOKEN",           "HOLDFAST_HELD", "HOLDFAST_WEB_TOKEN"};
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
        if (!name.starts_with("HOLDFAST_") || std::ranges::find(known, name) != known.end()) continue;
        tell(fmt::format("{} is no variable of holdfast, and nothing reads it; is it misspelt? (holdfast run --help)",
                         printable(name)));
    }
}

}  // namespace

// The user info has a ':' and ends at the last '@' of the authority.
bool has_password(std::string_view url) {
    const std::size_t scheme_end = url.find("://");
    if (scheme_end == url.npos) return false;
    const std::size_t begin = scheme_end + 3;
    const std::string_view authority = url.substr(begin, url.find_first_of("/?#", begin) - begin);
    const std::size_t at = authority.rfind('@');
    if (at == authority.npos) return false;
    const std::string_view user_info = authority.substr(0, at);
    return user_info.find(':') + 1 < user_info.size();
}

server_choice choose_servers(const server_words& options, notices wanted, local_start start) {
    check_words(options);
    for (const std::string& url : options.urls) {
        if (url != local_word) refuse_password(url);
    }
    server_choice choice{.urls = named_servers(options)};
    const bool is_fallback = choice.urls.empty();
    if (is_fallback || wanted == notices::shown) warn_of_unknown_variables();
    if (is_fallback || is_local_word(choice.urls)) {
        choice.origin = server_origin::local;
        const local_home home = local_home::open();
        choice.runs = home.is_answered();
        // One that lives but cannot be reached is an error that this explains.
        if (!choice.runs && (start == local_start::if_needed || home.has_living_server())) {
            start_local_server(home);
            choice.runs = true;
        }
        choice.urls = {home.url()};
    }
    if (is_fallback) {
        tell(
            "no server is named (--url, HOLDFAST_URL, holdfast.toml), so this uses one of your own: its locks hold "
            "only among your "
            "own commands on this machine; --local says that this is meant");
    }
    choice.identity = identity_of(choice.urls);
    return choice;
}

bool is_local(const server_words& options) {
    check_words(options);
    const std::vector<std::string> named = named_servers(options);
    return named.empty() || is_local_word(named);
}

std::string url_variable(const server_words& options) {
    return options.local ? std::string(local_word) : joined(options.urls);
}

}  // namespace holdfast::cli
