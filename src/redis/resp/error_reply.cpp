#include "redis/resp/error_reply.hpp"

#include "redis/resp/characters.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace holdfast::redis {
namespace {

constexpr std::size_t longest_quote = 300;

constexpr std::array<std::pair<std::string_view, errc>, 19> prefixes{{
    {"WRONGPASS", errc::wrong_password},
    {"NOAUTH", errc::auth_required},
    {"NOPERM", errc::no_permission},
    {"DENIED", errc::no_permission},
    {"WRONGTYPE", errc::wrong_type},
    {"OOM", errc::out_of_memory},
    {"READONLY", errc::read_only},
    {"LOADING", errc::loading},
    {"MASTERDOWN", errc::read_only},
    {"UNBLOCKED", errc::read_only},  // a blocked command when the server became a replica
    {"BUSY", errc::busy_script},
    {"MISCONF", errc::misconfigured},
    {"NOREPLICAS", errc::misconfigured},
    {"NOPROTO", errc::too_old},
    {"UNKILLABLE", errc::busy_script},
    // The router follows the first two if the server is a known member of a Cluster.
    {"MOVED", errc::moving},
    {"ASK", errc::moving},
    {"TRYAGAIN", errc::moving},
    {"CLUSTERDOWN", errc::cluster_down},
}};

// A command that fails inside a script has its code in front in Redis 7. Redis 6.2 puts it behind
// "ERR Error running script (call to f_...): @user_script:3: ".
std::string_view inner_error(std::string_view text) {
    constexpr std::string_view wrapped = "ERR Error running script";
    if (!text.starts_with(wrapped)) return text;
    for (const auto& [prefix, code] : prefixes) {
        const auto at = text.find(std::string(" -").append(prefix));
        if (at != std::string_view::npos) return text.substr(at + 2);
        const auto bare = text.find(std::string(" ").append(prefix).append(" "));
        if (bare != std::string_view::npos) return text.substr(bare + 1);
    }
    return text;
}

bool has_word(std::string_view text, std::string_view word) {
    for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const auto end = at + word.size();
        if ((at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end]))) return true;
    }
    return false;
}

// A missing permission inside a script has no code of its own, and each server words it differently:
//   Redis 6.2, 7.0         ERR The user executing the script can't run this command or subcommand ...
//   Redis 8.0, Valkey 8.1  ERR ACL failure in script: User locks has no permissions to run the 'set' command ...
// So this function searches for typical words. It stops at the first quotation mark: names of keys and arguments follow
// it. Errors of our own scripts begin with "holdfast:".
bool is_right_lacking_in_script(std::string_view text) {
    if (!text.starts_with("ERR ") || text.starts_with("ERR holdfast:")) return false;
    const std::string head = to_lower(text.substr(0, text.find_first_of("'\"`")));
    return has_word(head, "acl") || has_word(head, "permission") || has_word(head, "permissions") ||
           has_word(head, "user executing the script can");
}

// Commands that were renamed or disabled, and services without scripts. Redis and Valkey word it differently inside of
// a script ("Unknown Redis command called from script", "Unknown command called from script").
std::string_view advice_about_what_is_missing(std::string_view text) {
    const std::string head = to_lower(text.substr(0, 200));
    const bool is_unknown = head.starts_with("err unknown command");
    if ((is_unknown && head.find("eval") < 30) || head.find("scripting support disabled") != head.npos) {
        return "; locks are scripts: allow EVAL and EVALSHA on this server, or use another one";
    }
    if (is_unknown && head.find(" called from") == head.npos) {
        return "; locks need this command: it is renamed or disabled on this server";
    }
    if (head.find("unknown redis command called from") != head.npos ||
        head.find("unknown command called from") != head.npos) {
        return "; locks need a command that is renamed or disabled on this server: holdfast doctor names it";
    }
    return {};
}

bool has_code(std::string_view text, std::string_view code) {
    return text.starts_with(code) && (text.size() == code.size() || text[code.size()] == ' ');
}

std::string printable(std::string_view text) {
    std::string out(text.substr(0, longest_quote));
    std::ranges::replace_if(out, is_control, '?');
    if (text.size() > longest_quote) out += "...";
    return out;
}

}  // namespace

failure classify_error(std::string_view text, std::string_view server) {
    failure result{errc::server_error, std::string(server) + ": " + printable(text)};
    if (const auto advice = advice_about_what_is_missing(text); !advice.empty()) {
        result.code = errc::unsupported;
        result.detail += advice;
    }
    if (is_right_lacking_in_script(text)) result.code = errc::no_permission;
    const std::string_view inner = inner_error(text);
    for (const auto& [prefix, code] : prefixes) {
        if (has_code(inner, prefix)) result.code = code;
    }
    return result;
}

}  // namespace holdfast::redis
