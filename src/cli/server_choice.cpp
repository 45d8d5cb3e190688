#include "cli/server_choice.hpp"

#include "cli/exit_code.hpp"
#include "cli/local_server.hpp"
#include "cli/system.hpp"
#include "redis/server_url.hpp"

#include <fmt/format.h>

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

std::string identity_of(redis::server_settings settings) {
    settings.user.clear();
    return settings.display();
}

}  // namespace

server_choice choose_server(const std::string& option, notices wanted) {
    if (!option.empty()) {
        const auto settings = redis::parse_url(option);
        if (has_password(option)) {
            throw trouble(
                fmt::format("{}: a password on the command line can be read by everybody on this machine; "
                            "put the URL into HOLDFAST_URL, or use ?password_file=PATH or ?password_env=VARIABLE",
                            settings.display()));
        }
        return {option, identity_of(settings), server_origin::named};
    }
    std::string url = environment("HOLDFAST_URL");
    const auto origin = url.empty() ? server_origin::local : server_origin::named;
    if (origin == server_origin::local) url = use_local_server(wanted);
    return {url, identity_of(redis::parse_url(url)), origin};
}

}  // namespace holdfast::cli
