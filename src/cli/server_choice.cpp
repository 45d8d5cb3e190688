#include "cli/server_choice.hpp"

#include "cli/exit_code.hpp"
#include "cli/local_server.hpp"
#include "cli/system.hpp"
#include "redis/server_url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

namespace holdfast::cli {
namespace {

// Of a URL that the parser accepts, where the user info has a ':' and ends at the last '@' of the authority.
bool has_password(std::string_view url) {
    const std::size_t begin = url.find("://") + 3;
    const std::string_view authority = url.substr(begin, url.find_first_of("/?#", begin) - begin);
    const std::size_t at = authority.rfind('@');
    if (at == authority.npos) return false;
    const std::string_view user_info = authority.substr(0, at);
    return user_info.find(':') + 1 < user_info.size();
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
    if (settings.sentinels) std::ranges::sort(settings.sentinels->places);
    std::ranges::sort(settings.seeds);
    return settings.display();
}

std::string identity_of(const std::vector<std::string>& urls) {
    std::vector<std::string> names;
    for (const std::string& url : urls) names.push_back(identity_of(redis::parse_url(url)));
    std::ranges::sort(names);
    if (const auto twin = std::ranges::adjacent_find(names); twin != names.end()) {
        throw trouble(fmt::format("{} is named twice: each server has one vote", *twin));
    }
    return joined(names);
}

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

}  // namespace

std::string joined(const std::vector<std::string>& urls) {
    std::string text;
    for (const std::string& url : urls) {
        if (!text.empty()) text += ' ';
        for (const char c : url) text += c == ' ' ? "%20" : std::string(1, c);
    }
    return text;
}

server_choice choose_servers(const std::vector<std::string>& options, notices wanted) {
    server_choice choice{.urls = options};
    for (const std::string& url : options) refuse_password(url);
    if (options.empty()) choice.urls = words_of(environment("HOLDFAST_URL"));
    if (choice.urls.empty()) {
        choice.origin = server_origin::local;
        choice.urls = {use_local_server(wanted)};
    }
    choice.identity = identity_of(choice.urls);
    return choice;
}

}  // namespace holdfast::cli
