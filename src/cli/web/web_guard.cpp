#include "cli/web/web_guard.hpp"

#include "api/runtime/system_random.hpp"

#include <fmt/format.h>
#include <boost/asio/ip/address.hpp>

namespace holdfast::cli {
namespace {

// In the same time for every wrong text of that length. `volatile`, or a compiler may stop at the first difference.
bool is_same(std::string_view told, std::string_view expected) {
    if (told.size() != expected.size()) return false;
    volatile unsigned char difference = 0;
    for (std::size_t i = 0; i < told.size(); ++i) {
        difference = static_cast<unsigned char>(difference | (told[i] ^ expected[i]));
    }
    return difference == 0;
}

std::string small(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return result;
}

// "[::1]:7575" -> "::1", "localhost:7575" -> "localhost"
std::string without_port(std::string_view host) {
    if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') == host.npos ? 0 : host.find(']') - 1));
    return std::string(host.substr(0, host.find(':')));
}

bool is_address(const std::string& host) {
    boost::system::error_code no;
    boost::asio::ip::make_address(host, no);
    return !no;
}

}  // namespace

std::optional<http_answer> web_guard::refuse(const http_request& asked) const {
    const std::string host = small(asked.field("host"));
    const std::string name = without_port(host);
    if (!is_address(name) && name != "localhost" && !hosts.contains(name)) {
        return http_answer{.status = 421,
                           .body =
                               "This server does not answer to that name: use its address, or tell it the name "
                               "with --host.\n"};
    }
    const std::string_view origin = asked.field("origin");
    if (!origin.empty() && small(origin) != "http://" + host && small(origin) != "https://" + host) {
        return http_answer{.status = 403, .body = "Requests of other sites are refused.\n"};
    }
    const std::string_view site = asked.field("sec-fetch-site");
    const bool is_link = asked.path == "/" && asked.field("sec-fetch-dest") == "document";
    if (!site.empty() && site != "same-origin" && site != "none" && !is_link) {
        return http_answer{.status = 403, .body = "Requests of other sites are refused.\n"};
    }
    return std::nullopt;
}

std::optional<http_answer> web_guard::refuse_without_token(const http_request& asked) const {
    constexpr std::string_view scheme = "Bearer ";
    std::string_view told = asked.field("authorization");
    told.remove_prefix(told.starts_with(scheme) ? scheme.size() : told.size());
    if (!token.empty() && is_same(told, token)) {
        return std::nullopt;
    }
    return http_answer{.status = 401,
                       .body = "The token is missing or wrong; `holdfast web` printed it on its terminal.\n",
                       .fields = {{"WWW-Authenticate", "Bearer"}}};
}

std::string random_token() {
    api::system_random source;
    const std::uint64_t first = source.next();
    return fmt::format("{:016x}{:016x}", first, source.next());
}

}  // namespace holdfast::cli
