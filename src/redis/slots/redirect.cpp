#include "redis/slots/redirect.hpp"

#include "redis/resp/characters.hpp"
#include "redis/resp/error_reply.hpp"
#include "redis/url/url_text.hpp"

namespace holdfast::redis {
namespace {

// "16287 host:port" of MOVED and ASK. The host may be an IPv6 address without brackets, or empty.
std::optional<redirect> read_target(redirect::kind what, std::string_view text, const server_address& asked) {
    const auto space = text.find(' ');
    const auto colon = text.rfind(':');
    if (space == std::string_view::npos || colon == std::string_view::npos || colon < space) return std::nullopt;
    const auto slot = parse_number(text.substr(0, space), hash_slots - 1);
    if (!slot) return std::nullopt;
    const std::string_view said = text.substr(space + 1, colon - space - 1);
    const std::string_view host = said.empty() ? asked.host : said;
    const auto to = told_address(host, number_in<std::int64_t>(text.substr(colon + 1)));
    if (!to) return std::nullopt;
    // "?": the slot has an owner, but its host name is not known yet.
    return host == "?" ? redirect{redirect::kind::down} : redirect{what, static_cast<hash_slot>(*slot), *to};
}

// A Cluster that is down lets scripts begin, because they may only read, and then refuses all writes. Any other error
// may come after a write: "... a non local key in a cluster node", and other wordings of other servers. If the script
// did not run at all, this classification only costs a repetition.
std::optional<redirect> read_stopped_script(std::string_view error_text) {
    const auto says = [error_text](std::string_view what) { return error_text.find(what) != std::string_view::npos; };
    if (error_text.starts_with("ERR Script attempted to ")) {
        const bool is_down = says(" while the cluster is down") || says(" a slot not served");
        return redirect{is_down ? redirect::kind::down : redirect::kind::half_run};
    }
    if (error_text.starts_with("ERR Unable to execute command ") && says(" during rehashing of the slot")) {
        return redirect{redirect::kind::half_run};
    }
    return std::nullopt;
}

}  // namespace

std::optional<redirect> read_redirect(std::string_view error_text, const server_address& asked) {
    constexpr std::string_view moved = "MOVED ";
    constexpr std::string_view ask = "ASK ";
    if (error_text.starts_with(moved)) {
        return read_target(redirect::kind::moved, error_text.substr(moved.size()), asked);
    }
    if (error_text.starts_with(ask)) return read_target(redirect::kind::ask, error_text.substr(ask.size()), asked);
    if (const auto stopped = read_stopped_script(error_text)) return stopped;

    const errc code = classify_error(error_text, "").code;
    if (code == errc::moving) return redirect{redirect::kind::try_again};
    if (code == errc::cluster_down) return redirect{redirect::kind::down};
    if (spoils_link(code)) return redirect{redirect::kind::spoiled_link};
    return std::nullopt;
}

}  // namespace holdfast::redis
