// The parser: scheme, authority, path, query, in that order.
//
// It cuts by the grammar: the authority ends at the first '/', '?' or '#', the user info at its last '@'. In a URL
// whose password contains a bare '/' or '?' the cut is in the wrong place. Such a URL fails at the host, the port or
// the path, and no message shows what was there: examined_url shows only what redact() lets through.
#include "redis/url/server_url.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <limits>

#include "redis/resp/characters.hpp"
#include "redis/url/url_options.hpp"
#include "redis/url/url_text.hpp"

namespace holdfast::redis {
namespace {

constexpr std::size_t longest_host = 253;
constexpr std::size_t longest_socket_path = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::uint16_t sentinel_port = 26379;
constexpr std::string_view sentinel_suffix = "+sentinel";
constexpr std::string_view cluster_suffix = "+cluster";
constexpr std::chrono::milliseconds cluster_health_interval{1000};
constexpr std::string_view schemes =
    "there are redis://host:port/db, rediss://host:port/db (TLS), unix:///path, redis+sentinel://host,host/primary, "
    "redis+cluster://host,host and the last two with rediss+ (TLS)";

enum class layout { server, sentinels, cluster };

struct url_parts {
    std::string_view userinfo;
    bool has_userinfo = false;
    std::string_view host_and_port;
    std::string_view path;  // with its '/'
    std::string_view query;
};

// Removes that end from the scheme. False: it has another.
bool take_suffix(std::string& scheme, std::string_view suffix) {
    if (!scheme.ends_with(suffix)) return false;
    scheme.resize(scheme.size() - suffix.size());
    return true;
}

layout read_scheme(const examined_url& url, std::string_view scheme, server_settings& settings) {
    std::string lower = to_lower(scheme);
    if (lower == "unix") {
        settings.kind = transport::unix_socket;
        return layout::server;
    }
    layout of = layout::server;
    if (take_suffix(lower, sentinel_suffix)) {
        of = layout::sentinels;
        settings.sentinels.emplace();
    } else if (take_suffix(lower, cluster_suffix)) {
        of = layout::cluster;
    }
    settings.kind = lower == "rediss" ? transport::tls : transport::tcp;
    if (lower != "redis" && lower != "rediss") {
        url.refuse("unknown scheme " + url.quote(scheme) + "; " + std::string(schemes));
    }
    return of;
}

url_parts split(const examined_url& url, std::string_view text) {
    if (text.find('#') != text.npos) url.refuse("a '#' has no meaning here; in a password it is written %23");
    url_parts parts;
    const std::size_t query = text.find('?');
    if (query != text.npos) parts.query = text.substr(query + 1);
    text = text.substr(0, query);
    const std::size_t path = std::min(text.find('/'), text.size());
    parts.path = text.substr(path);
    parts.host_and_port = text.substr(0, path);
    const std::size_t at = parts.host_and_port.rfind('@');
    if (at == text.npos) return parts;
    parts.has_userinfo = true;
    parts.userinfo = parts.host_and_port.substr(0, at);
    parts.host_and_port.remove_prefix(at + 1);
    return parts;
}

void read_userinfo(const examined_url& url, std::string_view text, server_settings& settings) {
    const std::size_t colon = text.find(':');
    if (colon == text.npos) {
        url.refuse(
            "no ':' in front of the '@': a password is written redis://:password@host, with its user "
            "redis://user:password@host, a user without a password redis://user:@host");
    }
    if (text.find('@') != text.npos) url.refuse("more than one '@': in a user name or password it is written %40");
    settings.user = url.decode("the user name", text.substr(0, colon));
    require_printable(url, "the user name", settings.user);
    settings.password = secret(url.decode("the password", text.substr(colon + 1)));
    if (settings.user.empty() && settings.password.empty()) {
        url.refuse("the password is empty; without one, leave out what is in front of the host, the '@' included");
    }
}

// The inside of [...]: an IPv6 address, perhaps with a zone (%25eth0).
std::string parse_ipv6(const examined_url& url, std::string_view text) {
    std::string whole = url.decode("the host", text);
    require_printable(url, "the host", whole);
    const std::string address = whole.substr(0, whole.find('%'));
    std::array<unsigned char, sizeof(in6_addr)> unused{};
    if (whole.ends_with('%') || inet_pton(AF_INET6, address.c_str(), unused.data()) != 1) {
        url.refuse("what is in [ ] is not an IPv6 address");
    }
    return whole;
}

void refuse_several(const examined_url& url, std::string_view text) {
    if (text.find_first_of(", ") == text.npos) return;
    url.refuse(
        "this is more than one server: a ',' separates the hosts of a redis+sentinel:// or redis+cluster:// URL only; "
        "several servers, of which a majority decides, are several URLs: --url once for each, or separated by blanks "
        "in HOLDFAST_URL");
}

std::string parse_host(const examined_url& url, std::string_view text) {
    if (text.starts_with('[')) return parse_ipv6(url, text.substr(1, text.size() - 2));
    const bool plain = std::ranges::all_of(
        text, [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.'; });
    refuse_several(url, text);
    if (!plain) {
        url.refuse(
            "the host has a character that host names do not have; "
            "is there a bare '@', '/' or '?' in the password? They are written %40, %2F and %3F");
    }
    if (text.size() > longest_host) url.refuse("the host is longer than 253 characters");
    return std::string(text);
}

// A missing port is that of `address`.
void read_host_and_port(const examined_url& url, std::string_view text, server_address& address) {
    std::size_t host_end = std::min(text.find(':'), text.size());
    if (text.starts_with('[')) {
        const std::size_t bracket = text.find(']');
        if (bracket == text.npos) url.refuse("the '[' in front of the IPv6 address has no ']'");
        host_end = bracket + 1;
    }
    const std::string_view rest = text.substr(host_end);
    if (host_end == 0 && !rest.empty()) {
        url.refuse("there is a ':' but no host in front of it; for a password write redis://:password@host");
    }
    if (!rest.empty()) {
        const auto port = parse_number(rest.substr(1), std::numeric_limits<std::uint16_t>::max());
        if (!rest.starts_with(':') || !port || *port == 0) {
            refuse_several(url, text);
            url.refuse(
                "what follows the host is not a port: a port is ':' and a number from 1 to 65535, an IPv6 "
                "address "
                "is written in [ ], and a user and password end with '@'");
        }
        address.port = static_cast<std::uint16_t>(*port);
    }
    if (host_end != 0) address.host = parse_host(url, text.substr(0, host_end));
}

// False: there is none.
bool read_database(const examined_url& url, std::string_view number, server_settings& settings) {
    if (number.empty()) return false;
    const auto database = parse_number(number, std::numeric_limits<std::int32_t>::max());
    if (!database) {
        url.refuse(
            "what follows the '/' is not a database: it is a number from 0 on; "
            "is there a bare '/' in the password? It is written %2F");
    }
    settings.database = *database;
    return true;
}

// host[:port][/db]
bool read_server(const examined_url& url, const url_parts& parts, server_settings& settings) {
    // "redis://:$PASSWORD@$HOST" with HOST unset must not send the password to 127.0.0.1.
    if (parts.has_userinfo && parts.host_and_port.empty()) url.refuse("no host after the '@'");
    server_address address{settings.host, settings.port};
    read_host_and_port(url, parts.host_and_port, address);
    settings.host = std::move(address.host);
    settings.port = address.port;
    return read_database(url, parts.path.substr(std::min<std::size_t>(1, parts.path.size())), settings);
}

// A list of addresses. `example` shows the form of such a URL.
struct address_list {
    std::uint16_t default_port;
    std::string_view called;
    std::string_view example;
};

std::vector<server_address> read_addresses(const examined_url& url, std::string_view list, const address_list& kind) {
    std::vector<server_address> addresses;
    for (;;) {
        const std::size_t end = std::min(list.find(','), list.size());
        server_address address{{}, kind.default_port};
        read_host_and_port(url, list.substr(0, end), address);
        if (address.host.empty()) {
            url.refuse("the host of a " + std::string(kind.called) + " is missing: they are named " +
                       std::string(kind.example));
        }
        if (std::ranges::find(addresses, address) != addresses.end()) {
            url.refuse("the " + std::string(kind.called) + " " + url.quote(list.substr(0, end)) + " is named twice");
        }
        addresses.push_back(std::move(address));
        if (end == list.size()) return addresses;
        list.remove_prefix(end + 1);
    }
}

// host[:port],host[:port]/primary[/db]
bool read_sentinels(const examined_url& url, const url_parts& parts, server_settings& settings) {
    sentinel_settings& sentinels = *settings.sentinels;
    settings.host.clear();
    sentinels.addresses = read_addresses(url, parts.host_and_port,
                                         {sentinel_port, "sentinel", "redis+sentinel://host,host,host/primary"});
    const std::string_view path = parts.path.substr(std::min<std::size_t>(1, parts.path.size()));
    const std::size_t end = std::min(path.find('/'), path.size());
    sentinels.primary = url.decode("the name of the primary", path.substr(0, end));
    if (sentinels.primary.empty()) {
        url.refuse(
            "the name of the primary is missing: it is what `sentinel monitor` calls it, as in "
            "redis+sentinel://host,host,host/mymaster");
    }
    // Sentinels separate words by blanks in their announcements.
    if (std::ranges::any_of(sentinels.primary, [](char c) { return is_control(c) || c == ' '; })) {
        url.refuse("the name of the primary has a blank or a control character in it");
    }
    return read_database(url, path.substr(std::min(end + 1, path.size())), settings);
}

// host[:port],host[:port][/0]
bool read_cluster(const examined_url& url, const url_parts& parts, server_settings& settings) {
    settings.seeds =
        read_addresses(url, parts.host_and_port, {settings.port, "member", "redis+cluster://host,host,host"});
    settings.health_interval = cluster_health_interval;
    return read_database(url, parts.path.substr(std::min<std::size_t>(1, parts.path.size())), settings);
}

void read_socket_path(const examined_url& url, const url_parts& parts, server_settings& settings) {
    if (!parts.host_and_port.empty()) {
        url.refuse("a unix:// URL has no host, and its path begins with '/': unix:///run/redis.sock");
    }
    settings.path = url.decode("the path", parts.path);
    require_printable(url, "the path", settings.path);
    if (settings.path.size() <= 1) url.refuse("the path of the socket is missing: unix:///run/redis.sock");
    if (settings.path.size() > longest_socket_path) {
        url.refuse("the path of the socket is longer than the " + std::to_string(longest_socket_path) +
                   " bytes that the system allows");
    }
}

}  // namespace

server_settings parse_url(std::string_view text) {
    const examined_url url(text);
    const std::size_t scheme_end = text.find("://");
    if (scheme_end == text.npos) url.refuse("no scheme in front; " + std::string(schemes));
    server_settings settings;
    const layout of = read_scheme(url, text.substr(0, scheme_end), settings);
    const url_parts parts = split(url, text.substr(scheme_end + 3));
    if (parts.has_userinfo) read_userinfo(url, parts.userinfo, settings);
    bool has_database = false;
    if (settings.kind == transport::unix_socket) {
        read_socket_path(url, parts, settings);
    } else {
        has_database = of == layout::sentinels ? read_sentinels(url, parts, settings)
                       : of == layout::cluster ? read_cluster(url, parts, settings)
                                               : read_server(url, parts, settings);
    }
    const url_options options(url, parts.query);
    if (has_database && options.has("db")) {
        url.refuse("the database is given twice: after the '/' and as the option db");
    }
    options.apply(settings);
    if (of == layout::cluster && settings.database != 0) url.refuse("a Cluster has one database only, which is 0");
    if (of == layout::cluster && settings.resp == resp_choice::resp2 && settings.wake == wake_choice::push) {
        url.refuse("on a Cluster wake=push needs RESP3: with resp=2 waiters poll");
    }
    return settings;
}

std::string to_text(const server_address& address) {
    const bool ipv6 = address.host.find(':') != std::string::npos;
    const std::string host = ipv6 ? "[" + percent_encode(address.host, ":") + "]" : address.host;
    return host + ":" + std::to_string(address.port);
}

namespace {

std::string joined(const std::vector<server_address>& addresses) {
    std::string all;
    for (const server_address& each : addresses) all += (all.empty() ? "" : ",") + to_text(each);
    return all;
}

}  // namespace

std::string server_settings::display() const {
    const std::string who = user.empty() ? std::string() : percent_encode(user, "") + "@";
    if (kind == transport::unix_socket) {
        const std::string suffix = database == 0 ? std::string() : "?db=" + std::to_string(database);
        return "unix://" + who + percent_encode(path, "/:@+,=") + suffix;
    }
    const std::string scheme = kind == transport::tls ? "rediss" : "redis";
    if (!seeds.empty()) return scheme + std::string(cluster_suffix) + "://" + who + joined(seeds);
    const std::string behind = "/" + std::to_string(database);
    if (!sentinels) return scheme + "://" + who + to_text({host, port}) + behind;
    const std::string all = scheme + std::string(sentinel_suffix) + "://" + who + joined(sentinels->addresses) + "/" +
                            percent_encode(sentinels->primary, "") + behind;
    return host.empty() ? all : all + " at " + to_text({host, port});
}

server_settings server_settings::for_sentinel(const server_address& which) const {
    server_settings link = *this;
    static_cast<server_access&>(link) = *sentinels;
    link.host = which.host;
    link.port = which.port;
    link.database = 0;
    link.resp = resp_choice::either;
    link.sentinels.reset();
    return link;
}

server_settings server_settings::for_wakes() const {
    server_settings link = *this;
    link.sentinels.reset();
    link.use = link_use::wakes;
    link.resp = resp_choice::resp2;
    return link;
}

server_settings server_settings::for_member(const server_address& which) const {
    server_settings link = *this;
    link.host = which.host;
    link.port = which.port;
    link.seeds.clear();
    link.use = link_use::cluster;
    return link;
}

}  // namespace holdfast::redis
