// Everything that can go wrong: codes, the exception, and why a lock was refused.
#pragma once

#include <holdfast/export.hpp>

#include <boost/system/error_code.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>

namespace holdfast {

/// Every way in which a lock operation can fail. Programs compare codes; people read `message()`.
enum class errc {
    // The lock says no.
    busy = 1,         ///< another owner holds the lock and the caller does not wait
    read_held,        ///< others hold the lock for reading and the caller does not wait
    write_held,       ///< another owner holds the lock for writing and the caller does not wait
    reserved,         ///< a waiter goes first (a writer, or one that wants more permits) and the caller does not wait
    timed_out,        ///< the deadline passed while the caller waited in the queue
    not_held,         ///< release or renewal of a lock that nobody holds
    held_by_other,    ///< release or renewal of a lock that another owner holds
    held_other_mode,  ///< the caller holds the lock in the other mode
    would_deadlock,   ///< this wait could never end
    lost,             ///< the hold ended before it was released
    cancelled,        ///< the caller's stop_token or cancellation slot requested it
    too_deep,         ///< the owner re-entered more often than `client_options::max_depth`
    too_many,         ///< too many requests are in flight, or the same request is in flight already

    // The client cannot ask the servers, or not enough of them.
    no_quorum,           ///< fewer than a majority of the servers answered in time
    unreachable,         ///< no connection to the server before the deadline
    connection_refused,  ///< nothing listens at that address
    host_not_found,      ///< the host name does not resolve
    request_timed_out,   ///< the client is connected, but the server did not answer in time
    outcome_unknown,     ///< the connection broke after the request was sent; it may or may not have run

    // The server refuses.
    wrong_password,    ///< WRONGPASS: the server does not accept user and password
    auth_required,     ///< NOAUTH: the server requires a password and the URL has none
    no_permission,     ///< NOPERM: the ACL user lacks a right that locks need
    wrong_type,        ///< WRONGTYPE: the key holds something that is not a lock
    out_of_memory,     ///< OOM: the server is full and refuses writes
    read_only,         ///< READONLY: the server is a replica, not a primary
    loading,           ///< LOADING: the server is still loading its data
    busy_script,       ///< BUSY: a long-running script blocks the server
    recovering,        ///< the server restarted or took over a short while ago and is not trusted yet
    misconfigured,     ///< MISCONF, NOREPLICAS: the server refuses writes because it cannot save or replicate them
    server_error,      ///< any other error reply
    too_old,           ///< older than Redis 6.2, in a Cluster older than 7.0, or without the RESP3 that was asked for
    no_such_database,  ///< SELECT of a database that the server does not have

    // The connection.
    protocol_error,         ///< the peer sent something that is not RESP
    reply_too_large,        ///< a reply exceeds the configured limits
    tls_failed,             ///< the TLS handshake failed
    certificate_untrusted,  ///< no trusted authority signed the server's certificate
    certificate_mismatch,   ///< the certificate belongs to another host
    certificate_expired,    ///< the certificate, or one above it in its chain, has expired or is not valid yet
    tls_expected,           ///< the client speaks plain text to a port that expects TLS
    tls_unexpected,         ///< the client speaks TLS to a port that expects plain text

    // The caller.
    bad_url,        ///< the URL cannot be understood
    bad_name,       ///< the lock name cannot be used
    bad_option,     ///< an option is out of its range
    client_closed,  ///< the client is closed
    forked,         ///< used in the child of a fork(); the child does not own the parent's holds

    // Sentinel, Cluster and replicas.
    no_primary,      ///< no sentinel knows where the primary is
    moving,          ///< the lock's slot is moving from one member of the Cluster to another
    cluster_down,    ///< CLUSTERDOWN: the Cluster does not serve the lock's slot
    bad_topology,    ///< the URL says single server and the server is a Cluster, or the other way round
    not_replicated,  ///< fewer replicas than required acknowledged in time

    // Credentials that change.
    no_credentials,  ///< `client_options::credentials` threw, or has not returned yet

    // Missing features and duplicate servers.
    unsupported,  ///< the server, or this build of holdfast, lacks something that locks need
    named_twice,  ///< another URL of this client leads to the same server, which votes only once

    // Semaphores.
    limit_differs,  ///< others use the semaphore with another limit
    over_limit,     ///< the caller asks for more permits than the semaphore's limit
};

/// The category of `errc`. Its `message()` says what happened and what to try.
HOLDFAST_EXPORT const boost::system::error_category& category() noexcept;

/// Converts `errc` where an error_code is expected.
HOLDFAST_EXPORT boost::system::error_code make_error_code(errc code) noexcept;

/// What blocking calls throw. `code()` compares with `errc`. `what()` names the lock and the server, never a secret.
class HOLDFAST_EXPORT error : public std::system_error {
public:
    /// `what()` is `detail` and the message of the code.
    error(errc code, const std::string& detail, std::optional<std::chrono::milliseconds> recovers_in = {});

    /// The code as an `errc`, for a switch.
    errc condition() const noexcept { return condition_; }

    /// With errc::recovering: the time until enough servers vote. `what()` names those that do not vote yet.
    std::optional<std::chrono::milliseconds> recovers_in() const noexcept { return recovers_in_; }

private:
    errc condition_;
    std::optional<std::chrono::milliseconds> recovers_in_;
};

/// Why a lock was not acquired. Blocking calls fill it on request; see `acquire_options::why_not`.
struct refusal {
    /// errc::busy, errc::timed_out and the like where the call returned without the lock; otherwise what it threw.
    errc code = errc::busy;
    /// What the server or the connection said. Names the server, never holds a secret. May be empty.
    std::string detail = {};
    /// How long the holder's lease still ran when the server answered. None: no expiry, or another reason.
    std::optional<std::chrono::milliseconds> holder_left = {};
    /// The hold id of the holder. Empty if a holder is not the reason.
    std::string holder = {};
    /// With errc::recovering: the time until enough servers vote. None: another reason.
    std::optional<std::chrono::milliseconds> recovers_in = {};
    /// The note of that holder, any bytes; see `acquire_options::note`. Empty: the holder has no note, or it is not
    /// known.
    std::string note = {};
    /// The holder's client keeps the lock after use (`mutex_options::keep`): it gives the lock back when it is asked
    /// and nobody in its process uses it.
    bool kept = false;
};

}  // namespace holdfast

// Makes `code == holdfast::errc::busy` work. Doxygen knows no scope for it.
/// @cond
template <>
struct boost::system::is_error_code_enum<holdfast::errc> : std::true_type {};
/// @endcond
