// What can go wrong, each kind told apart, and what to do about it.
#pragma once

#include <holdfast/export.hpp>

#include <boost/system/error_code.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>

namespace holdfast {

/// Every way a lock operation can end other than well.
///
/// A condition of its own gets a code of its own: callers branch on these, people read `message()`.
enum class errc {
    // The lock said no.
    busy = 1,         ///< somebody else holds it and the caller did not want to wait
    read_held,        ///< others read it and the caller did not want to wait
    write_held,       ///< another writes it and the caller did not want to wait
    reserved,         ///< a writer who waits goes first, and the caller did not want to wait
    timed_out,        ///< waited in line until the deadline
    not_held,         ///< release or renew of a lock that nobody holds
    held_by_other,    ///< release or renew of a lock that another owner holds
    held_other_mode,  ///< the caller holds it, but in the other mode
    would_deadlock,   ///< waiting here could never end
    lost,             ///< the hold ended before it was released
    cancelled,        ///< the caller's stop_token or cancellation slot asked for it
    too_deep,         ///< re-entered more often than the limit
    too_many,         ///< the client's limit of requests under way is reached

    // The servers could not be asked, or not enough of them.
    no_quorum,           ///< fewer than a majority of the servers answered in time
    unreachable,         ///< no connection to the server within the deadline
    connection_refused,  ///< nothing listens at that address
    host_not_found,      ///< the name does not resolve
    request_timed_out,   ///< connected, but the server did not answer in time
    outcome_unknown,     ///< the link died after the request was sent; it may or may not have run

    // The server was asked and refused.
    wrong_password,    ///< WRONGPASS: user or password not accepted
    auth_required,     ///< NOAUTH: the server wants a password and none was given
    no_permission,     ///< NOPERM: the ACL user lacks a right that locks need
    wrong_type,        ///< WRONGTYPE: the key holds something that is not a lock
    out_of_memory,     ///< OOM: the server is full and refuses writes
    read_only,         ///< READONLY: a replica, not a primary
    loading,           ///< LOADING: the server is still reading its data
    busy_script,       ///< BUSY: a script of somebody blocks the server
    recovering,        ///< the server was restarted, or took over, a short while ago and is not trusted yet
    misconfigured,     ///< MISCONF, NOREPLICAS: it refuses writes because it cannot save them, or lacks replicas
    server_error,      ///< any other error reply
    too_old,           ///< older than Redis 6.2, in a Cluster than 7.0, or without RESP3
    no_such_database,  ///< SELECT of a database the server does not have

    // The wire.
    protocol_error,         ///< the peer sent what is not RESP
    reply_too_large,        ///< a reply beyond the configured limits
    tls_failed,             ///< the TLS handshake failed
    certificate_untrusted,  ///< the server's certificate is not signed by a trusted authority
    certificate_mismatch,   ///< the certificate is for another host
    certificate_expired,    ///< the certificate, or one that it is signed by, has expired or is not valid yet
    tls_expected,           ///< plain text spoken to a port that wants TLS
    tls_unexpected,         ///< TLS spoken to a port that talks plain text

    // The caller.
    bad_url,        ///< the URL could not be understood
    bad_name,       ///< a lock name that cannot be used
    bad_option,     ///< an option out of its range
    client_closed,  ///< the client was closed
    forked,         ///< used in the child of a fork(); the parent's holds are not the child's

    // Past one server.
    no_primary,      ///< no sentinel could say where the primary is
    moving,          ///< the lock's slot is moving from one member of the Cluster to another
    cluster_down,    ///< CLUSTERDOWN: the Cluster does not serve the lock's slot
    bad_topology,    ///< a Cluster where the URL says a single server, or the other way round
    not_replicated,  ///< fewer replicas than the caller wants had it in time
};

/// The category of `errc`; `message()` says what happened and what to try.
HOLDFAST_EXPORT const boost::system::error_category& category() noexcept;

/// Lets `errc` stand where an error_code is expected.
HOLDFAST_EXPORT boost::system::error_code make_error_code(errc code) noexcept;

/// What blocking calls throw. `code()` compares with `errc`; `what()` names the lock and the server, never a secret.
class HOLDFAST_EXPORT error : public std::system_error {
public:
    /// `detail` is what `what()` says besides the message of the code.
    error(errc code, const std::string& detail, std::optional<std::chrono::milliseconds> recovers_in = {});

    /// The code as an `errc`, for a switch.
    errc condition() const noexcept { return condition_; }

    /// With errc::recovering: how long until enough servers vote. `what()` names those that do not vote yet.
    std::optional<std::chrono::milliseconds> recovers_in() const noexcept { return recovers_in_; }

private:
    errc condition_;
    std::optional<std::chrono::milliseconds> recovers_in_;
};

}  // namespace holdfast

// Makes `code == holdfast::errc::busy` work. Doxygen knows no scope for it.
/// @cond
template <>
struct boost::system::is_error_code_enum<holdfast::errc> : std::true_type {};
/// @endcond
