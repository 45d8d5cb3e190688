// Where a server is and how to speak to it, and the URL that says so.
//
//     redis://[[[user]:password@]host[:port]][/db][?options]
//     rediss://...                                            the same over TLS
//     unix://[[user]:password@]/path/to.sock[?db=N&options]
//     redis+sentinel://[[user]:password@]host[:port][,host[:port]...]/primary[/db][?options]
//     rediss+sentinel://...                                   the same with TLS, to the primary and to the sentinels
//     redis+cluster://[[user]:password@]host[:port][,host[:port]...][?options]
//     rediss+cluster://...                                    the same with TLS, to every member
//
// Without a host it is 127.0.0.1, without a port 6379. User, password, path and option values are
// percent-decoded
// ('+' stays '+'). Options: timeout (connect and request), connect_timeout, request_timeout, health_interval,
// backoff_min, backoff_max (durations, `500ms`); db, client_name, user, password_file, password_env; on
// rediss:// also verify=true|false, ca_file, ca_dir, cert, key, server_name. With sentinels, whose port is 26379 unless
// it is given, user and password are those of the primary; theirs, and their TLS, are options that begin with
// sentinel_. Of a Cluster one member that is there is enough: it names the others, who get the same user, password and
// TLS. Its only database is 0, and its health_interval is 1s unless it is given: a primary that hangs must be noticed
// while the others replace it.
//
// Two rules shape the parser. What is not understood is refused, by name and with what is allowed: an option
// that is silently ignored is found out in production. And no message ever shows a password, not even that of
// a URL too mangled to tell where its password is: messages show `redact(url)`, and quote only what is left in it.
//
// A user name alone (`redis://word@host`) is refused: too many who write it mean a password. A user without a
// password, for servers whose ACL says `nopass`, is written `redis://user:@host` or `?user=`.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/endpoint.hpp"
#include "redis/url/secret.hpp"

namespace holdfast::redis {

using net::tls_settings;
using net::transport;

// How to get in.
struct server_access {
    transport kind = transport::tcp;
    std::string user;  // not empty: authenticate, even if the password is empty
    secret password;
    tls_settings tls;
};

struct server_address {
    std::string host;  // a name, or an address; IPv6 without its brackets
    std::uint16_t port = 0;

    auto operator<=>(const server_address&) const = default;
};

// "host:port", as a URL has it.
std::string to_text(const server_address& address);

// Those who know where the primary is.
struct sentinel_settings : server_access {
    std::string primary;                    // as they call it
    std::vector<server_address> addresses;  // at least one, none of them twice
};

// What a link is for, and so what the server must be.
enum class link_use : std::uint8_t {
    server,   // a primary that is all there is
    cluster,  // a member of a Cluster, which is asked for its own slots only
    member,   // the same, looked at by a tool as if it were alone
};

struct server_settings : server_access {
    std::string host = "127.0.0.1";  // an IPv6 address without its brackets; with sentinels empty until they have said
    std::uint16_t port = 6379;
    std::string path;  // of the unix socket
    unsigned database = 0;
    std::string client_name;
    std::optional<sentinel_settings> sentinels;
    // Members of a Cluster to begin with, none of them twice; `host` and `port` then mean nothing. Empty: it is none.
    std::vector<server_address> seeds;
    link_use use = link_use::server;
    std::chrono::milliseconds connect_timeout{2000};
    std::chrono::milliseconds request_timeout{2000};
    std::chrono::milliseconds health_interval{5000};
    std::chrono::milliseconds backoff_min{20};
    std::chrono::milliseconds backoff_max{2000};
    std::size_t max_reply_bytes = std::size_t{64} << 20;

    /// For errors and logs: redis://user@host:port/db, rediss://..., unix:///path; never a password. With sentinels
    /// redis+sentinel://..., and where they say that the primary is, once they have said it. A Cluster
    /// redis+cluster://... with its seeds.
    std::string display() const;

    /// For a link to one of the sentinels.
    server_settings for_sentinel(const server_address& which) const;
    /// For a link to one member of a Cluster: all have the same users, and the same TLS.
    server_settings for_member(const server_address& which) const;

    /// What the network layer needs of it.
    net::endpoint endpoint() const { return {kind, host, port, path, tls, display()}; }
};

/// Throws holdfast::error with errc::bad_url; the message says what is wrong, what is allowed, and shows
/// redact(url). Reads the file or the environment variable that password_file or password_env names.
server_settings parse_url(std::string_view url);

/// A string that may be a URL, well formed or not, fit to be shown: what is or may be user name and password
/// becomes
/// `***`, as does the value of any option that sounds like one; control characters become `_`. When in doubt
/// it hides too much. redact(redact(x)) == redact(x).
std::string redact(std::string_view url);

}  // namespace holdfast::redis
