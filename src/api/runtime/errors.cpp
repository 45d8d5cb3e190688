#include <holdfast/errors.hpp>

namespace holdfast {
namespace {

// What happened, then what to try. No line names a server: the detail of an `error` does that.
const char* describe(errc code) noexcept {
    switch (code) {
        case errc::busy:
            return "the lock is held by another owner; wait for it or try again later";
        case errc::read_held:
            return "others hold the lock for reading; wait for it or try again later";
        case errc::write_held:
            return "another owner holds the lock for writing; wait for it or try again later";
        case errc::reserved:
            return "a waiting writer has the next turn; wait in line or try again later";
        case errc::timed_out:
            return "the lock was not free before the deadline; allow a longer wait";
        case errc::not_held:
            return "the lock is not held; it was released or its lease ended before this call";
        case errc::held_by_other:
            return "the lock is held by another owner; nothing was changed";
        case errc::held_other_mode:
            return "the lock is held in the other mode; release or convert that hold first";
        case errc::would_deadlock:
            return "waiting here could never end; do not wait for yourself, inside a callback, or for a second upgrade";
        case errc::lost:
            return "the hold ended before it was released; stop touching what it protects";
        case errc::cancelled:
            return "the caller asked to stop waiting";
        case errc::too_deep:
            return "re-entered too often; look for an acquire without its release";
        case errc::too_many:
            return "too many requests under way; slow down or use another client";
        case errc::no_quorum:
            return "fewer than a majority of the servers answered in time; check that they are up";
        case errc::unreachable:
            return "no connection to the server before the deadline; check address, firewall and server";
        case errc::connection_refused:
            return "nothing listens at that address; start the server or correct the URL";
        case errc::host_not_found:
            return "the host name does not resolve; correct the URL or the name service";
        case errc::request_timed_out:
            return "the server did not answer in time; check its load or raise request_timeout";
        case errc::outcome_unknown:
            return "the link broke after the request was sent; it may or may not have run";
        case errc::wrong_password:
            return "the server does not accept this user and password; correct them in the URL";
        case errc::auth_required:
            return "the server wants a password; give one in the URL or by password_file or password_env";
        case errc::no_permission:
            return "the ACL user lacks a right that locks need; see \"The least rights\" in docs/deployment.md";
        case errc::wrong_type:
            return "the key holds something that is not this kind of lock; choose another name or prefix";
        case errc::out_of_memory:
            return "the server is out of memory and refuses writes; raise maxmemory or free space";
        case errc::read_only:
            return "the server is a read-only replica; use the URL of its primary";
        case errc::loading:
            return "the server is still loading its data; try again when it is ready";
        case errc::busy_script:
            return "a long-running script blocks the server; end it with SCRIPT KILL";
        case errc::recovering:
            return "the server was started or took over a short while ago, and may not know all holds; it votes "
                   "max_lease after that";
        case errc::misconfigured:
            return "the server refuses writes because it cannot save or replicate; see its log";
        case errc::server_error:
            return "the server answered with an error";
        case errc::too_old:
            return "holdfast needs Redis 6.2 or later, in a Cluster 7.0, speaking RESP3";
        case errc::no_such_database:
            return "the server has no database of that number; correct the URL";
        case errc::protocol_error:
            return "the peer does not speak the Redis protocol; check host and port";
        case errc::reply_too_large:
            return "a reply went beyond the configured limits; is this really the right server?";
        case errc::tls_failed:
            return "the TLS handshake failed; check certificates, versions and ciphers on both sides";
        case errc::certificate_untrusted:
            return "the server's certificate is not signed by a trusted authority; give its CA by ca_file";
        case errc::certificate_mismatch:
            return "the server's certificate is for another host; correct the host or give server_name";
        case errc::certificate_expired:
            return "the server's certificate has expired or is not valid yet; renew it on the server, or correct this "
                   "machine's clock";
        case errc::tls_expected:
            return "the server closed a plain connection at once, as a TLS port does; try rediss://";
        case errc::tls_unexpected:
            return "the server does not speak TLS on this port; try redis:// or the TLS port";
        case errc::bad_url:
            return "the URL could not be understood";
        case errc::bad_name:
            return "this lock name cannot be used";
        case errc::bad_option:
            return "an option is out of its range";
        case errc::client_closed:
            return "the client was closed; make a new one";
        case errc::forked:
            return "used in the child of a fork(); holds stay with the parent, make a new client in the "
                   "child";
        case errc::no_primary:
            return "no sentinel knows where the primary is; check its name in the URL, and that these are its "
                   "sentinels";
        case errc::moving:
            return "the lock's slot is moving to another member of the Cluster; try again when it has arrived";
        case errc::cluster_down:
            return "the Cluster does not serve the lock's slot; check its members, CLUSTER INFO says how many slots "
                   "fail";
        case errc::bad_topology:
            return "the server is not what the URL says; use redis+cluster:// for a Cluster, redis:// for a single "
                   "server";
        case errc::not_replicated:
            return "too few replicas had it in time; check that they are up, or raise replica_timeout";
    }
    return "unknown holdfast error";
}

class holdfast_category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "holdfast"; }
    std::string message(int value) const override { return describe(static_cast<errc>(value)); }
};

}  // namespace

const boost::system::error_category& category() noexcept {
    static const holdfast_category instance;
    return instance;
}

boost::system::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), category()};
}

error::error(errc code, const std::string& detail, std::optional<std::chrono::milliseconds> recovers_in)
    : std::system_error(std::error_code(make_error_code(code)), detail), condition_(code), recovers_in_(recovers_in) {}

}  // namespace holdfast
