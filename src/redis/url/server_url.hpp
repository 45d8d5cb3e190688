// The address and settings of a server, and their URL.
//
//     redis://[[[user]:password@]host[:port]][/db][?options]
//     rediss://...                                            the same over TLS
//     unix://[[user]:password@]/path/to.sock[?db=N&options]
//     redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/primary[/db][?options]
//     rediss+sentinel://...                                   the same with TLS, to the primary and to the sentinels
//     redis+cluster://[[user]:password@]host[:port][,host[:port]...][?options]
//     rediss+cluster://...                                    the same with TLS, to every member
//
// The default host is 127.0.0.1, the default port 6379. User, password, path and option values are percent-decoded ('+'
// stays '+'). Options: timeout (connect and request), connect_timeout, request_timeout, health_interval, backoff_min,
// backoff_max (durations, `500ms`); db, client_name, user, password_file, password_env; resp=2|3, wake=push|poll; on
// rediss:// also verify=true|false, ca_file, ca_dir, cert, key, server_name.
//
// With sentinels, whose default port is 26379, user and password are those of the primary. Options that begin with
// sentinel_ give those of the sentinels, and their TLS. Of a Cluster one reachable member is enough: it names the
// others, which get the same user, password and TLS. A Cluster has database 0 only. Its default health_interval is 1s:
// a primary that hangs must be detected while the others replace it.
//
// Two rules shape the parser. It refuses what it does not understand, and names what is allowed: an option that is
// silently ignored is noticed in production. And no message shows a password, not even of a malformed URL: messages
// show `redact(url)`, and quote only what is left in it.
//
// A user name alone (`redis://word@host`) is refused: many who write it mean a password. A user without a password, for
// servers whose ACL says `nopass`, is written `redis://user:@host` or `?user=`.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/endpoint.hpp"
#include "redis/url/login.hpp"
#include "redis/url/secret.hpp"

namespace holdfast::redis {

using net::tls_settings;
using net::transport;

// Transport and credentials.
struct server_access {
    transport kind = transport::tcp;
    std::string user;  // not empty: authenticate, even if the password is empty
    secret password;
    std::string password_file = {};  // where it came from; read again for each new connection
    // Asked for user and password before each login; null: they do not change.
    std::shared_ptr<login_source> logins = nullptr;
    tls_settings tls;

    // The client logs in.
    bool has_login() const noexcept { return !password.empty() || !user.empty(); }
};

struct server_address {
    std::string host;  // a name, or an address; IPv6 without its brackets
    std::uint16_t port = 0;

    auto operator<=>(const server_address&) const = default;
};

// "host:port", as a URL has it.
std::string to_text(const server_address& address);

// The sentinels that know the address of the primary.
struct sentinel_settings : server_access {
    std::string primary;                    // its name there
    std::vector<server_address> addresses;  // at least one, without duplicates
};

// The purpose of a link, which decides what the server must be.
enum class link_use : std::uint8_t {
    server,   // a primary outside of a Cluster
    cluster,  // a member of a Cluster, for its own slots
    member,   // a member of a Cluster that a tool inspects like a single server
    wakes,    // only subscriptions, beside a link that speaks RESP2
};

// `either`: RESP3, or RESP2 where the server refuses HELLO.
enum class resp_choice : std::uint8_t { either, resp2, resp3 };

// How waiters are woken. `either`: by messages, or by their own polls where the server refuses subscriptions.
enum class wake_choice : std::uint8_t { either, push, poll };

struct server_settings : server_access {
    std::string host = "127.0.0.1";  // IPv6 without brackets; with sentinels empty until they name it
    std::uint16_t port = 6379;
    std::string path;  // of the unix socket
    unsigned database = 0;
    std::string client_name;
    std::optional<sentinel_settings> sentinels;
    // Members of a Cluster to ask first, without duplicates; `host` and `port` are unused then. Empty: not a Cluster.
    std::vector<server_address> seeds;
    link_use use = link_use::server;
    resp_choice resp = resp_choice::either;
    wake_choice wake = wake_choice::either;
    std::chrono::milliseconds connect_timeout{2000};
    std::chrono::milliseconds request_timeout{2000};
    std::chrono::milliseconds health_interval{5000};
    std::chrono::milliseconds backoff_min{20};
    std::chrono::milliseconds backoff_max{2000};
    std::size_t max_reply_bytes = std::size_t{64} << 20;

    /// For errors and logs: redis://user@host:port/db, rediss://..., unix:///path; never a password. With sentinels
    /// redis+sentinel://... and the address of the primary, once known. For a Cluster redis+cluster://... with its
    /// seeds.
    std::string display() const;

    /// For a link to one of the sentinels.
    server_settings for_sentinel(const server_address& which) const;
    /// For a second link to the same server, which only listens.
    server_settings for_wakes() const;
    /// For a link to one member of a Cluster: all have the same users and the same TLS.
    server_settings for_member(const server_address& which) const;

    /// What the network layer needs.
    net::endpoint endpoint() const { return {kind, host, port, path, tls, display()}; }
};

/// The first line of that file. Fails with errc::no_credentials and says why; no message shows what is in the file.
std::variant<secret, failure> read_password(const std::string& file);

/// Throws holdfast::error with errc::bad_url. The message says what is wrong and what is allowed, and shows
/// redact(url). Reads the file or environment variable that password_file or password_env names.
server_settings parse_url(std::string_view url);

/// Makes a string that may be a URL, well formed or not, safe to show. What is or may be user name and password becomes
/// `***`, as does the value of an option that sounds like a password. Control characters become `_`. When in doubt it
/// hides too much. redact(redact(x)) == redact(x).
std::string redact(std::string_view url);

}  // namespace holdfast::redis
