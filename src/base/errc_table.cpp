#include "base/errc_table.hpp"

#include <array>
#include <cstddef>

namespace holdfast {
namespace {

enum trait : std::uint8_t {
    none = 0,
    plain_no = 1,
    by_lock = 2,
    by_path = 4,
    passing = 8,
    permanent = 16,
    spoils = 32,
};

constexpr auto rows = std::to_array<errc_row>({
    {errc::busy, "busy", plain_no | by_lock, "the lock is held by another owner; wait for it or try again later"},
    {errc::read_held, "read_held", plain_no | by_lock,
     "others hold the lock for reading; wait for it or try again later"},
    {errc::write_held, "write_held", plain_no | by_lock,
     "another owner holds the lock for writing; wait for it or try again later"},
    {errc::reserved, "reserved", plain_no | by_lock,
     "a waiter has the next turn (a writer, or one that wants more permits); wait in the queue or try again later"},
    {errc::timed_out, "timed_out", plain_no, "the lock was not free before the deadline; allow a longer wait"},
    {errc::not_held, "not_held", none, "the lock is not held; it was released or its lease ended before this call"},
    {errc::held_by_other, "held_by_other", none, "the lock is held by another owner; nothing was changed"},
    {errc::held_other_mode, "held_other_mode", by_lock,
     "the lock is held in the other mode; release or convert that hold first"},
    {errc::would_deadlock, "would_deadlock", by_lock,
     "waiting here could never end; do not wait for yourself, inside a callback, or for a second upgrade"},
    {errc::lost, "lost", none, "the hold ended before it was released; stop touching what it protects"},
    {errc::cancelled, "cancelled", none, "the caller asked to stop waiting"},
    {errc::too_deep, "too_deep", none, "re-entered too often; look for an acquire without its release"},
    {errc::too_many, "too_many", none, "too many requests in flight; slow down or use another client"},
    {errc::no_quorum, "no_quorum", none,
     "fewer than a majority of the servers answered in time; check that they are up"},
    {errc::unreachable, "unreachable", by_path,
     "no connection to the server before the deadline; check address, firewall and server"},
    {errc::connection_refused, "connection_refused", by_path,
     "nothing listens at that address; start the server or correct the URL"},
    {errc::host_not_found, "host_not_found", by_path,
     "the host name does not resolve; correct the URL or the name service"},
    {errc::request_timed_out, "request_timed_out", by_path,
     "the server did not answer in time; check its load or raise request_timeout"},
    {errc::outcome_unknown, "outcome_unknown", none,
     "the link broke after the request was sent; it may or may not have run"},
    {errc::wrong_password, "wrong_password", permanent,
     "the server does not accept this user and password; correct them in the URL"},
    {errc::auth_required, "auth_required", permanent | spoils,
     "the server wants a password; give one in the URL or by password_file or password_env"},
    {errc::no_permission, "no_permission", permanent,
     "the ACL user lacks a right that locks need; see \"The least rights\" in docs/deployment.md"},
    {errc::wrong_type, "wrong_type", none,
     "the key holds something that is not this kind of lock, as where one side uses a mutex and the other a "
     "shared_mutex or a semaphore; use one kind for a name, or choose another name or prefix"},
    {errc::out_of_memory, "out_of_memory", passing,
     "the server is out of memory and refuses writes; raise maxmemory or free space"},
    {errc::read_only, "read_only", passing | spoils, "the server is a read-only replica; use the URL of its primary"},
    {errc::loading, "loading", passing, "the server is still loading its data; try again when it is ready"},
    {errc::busy_script, "busy_script", passing, "a long-running script blocks the server; end it with SCRIPT KILL"},
    {errc::recovering, "recovering", none,
     "the server was started or took over a short while ago, and may not know all holds; it votes max_lease after "
     "that"},
    {errc::misconfigured, "misconfigured", passing,
     "the server refuses writes because it cannot save or replicate; see its log"},
    {errc::server_error, "server_error", permanent, "the server answered with an error"},
    {errc::too_old, "too_old", permanent, "holdfast needs Redis 6.2 or later, in a Cluster 7.0"},
    {errc::no_such_database, "no_such_database", permanent,
     "the server has no database of that number; correct the URL"},
    {errc::protocol_error, "protocol_error", permanent,
     "the peer does not speak the Redis protocol; check host and port"},
    {errc::reply_too_large, "reply_too_large", permanent,
     "a reply went beyond the configured limits; is this really the right server?"},
    {errc::tls_failed, "tls_failed", permanent,
     "the TLS handshake failed; check certificates, versions and ciphers on both sides"},
    {errc::certificate_untrusted, "certificate_untrusted", permanent,
     "the server's certificate is not signed by a trusted authority; give its CA by ca_file"},
    {errc::certificate_mismatch, "certificate_mismatch", permanent,
     "the server's certificate is for another host; correct the host or give server_name"},
    {errc::certificate_expired, "certificate_expired", permanent,
     "the server's certificate has expired or is not valid yet; renew it on the server, or correct this machine's "
     "clock"},
    {errc::tls_expected, "tls_expected", permanent,
     "the server closed a plain connection at once, as a TLS port does; try rediss://"},
    {errc::tls_unexpected, "tls_unexpected", permanent,
     "the server does not speak TLS on this port; try redis:// or the TLS port"},
    {errc::bad_url, "bad_url", none, "the URL could not be understood"},
    {errc::bad_name, "bad_name", none, "this lock name cannot be used"},
    {errc::bad_option, "bad_option", none, "an option is out of its range"},
    {errc::client_closed, "client_closed", none, "the client was closed; make a new one"},
    {errc::forked, "forked", none,
     "used in the child of a fork(); holds stay with the parent, make a new client in the child"},
    {errc::no_primary, "no_primary", by_path,
     "no sentinel knows where the primary is; check its name in the URL, and that these are its sentinels"},
    {errc::moving, "moving", by_path | passing,
     "the lock's slot is moving to another member of the Cluster; try again when it has arrived"},
    {errc::cluster_down, "cluster_down", by_path | passing,
     "the Cluster does not serve the lock's slot; check its members, CLUSTER INFO says how many slots fail"},
    {errc::bad_topology, "bad_topology", permanent,
     "the server is not what the URL says; use redis+cluster:// for a Cluster, redis:// for a single server"},
    {errc::not_replicated, "not_replicated", none,
     "too few replicas acknowledged it in time; check that they are up, or raise replica_timeout"},
    {errc::no_credentials, "no_credentials", by_path,
     "the callback that gives user and password failed or has not returned; see what it says, or the log"},
    {errc::unsupported, "unsupported", permanent,
     "locks need something that this server, or this build of holdfast, does not have"},
    {errc::named_twice, "named_twice", permanent,
     "two URLs lead to this server, which votes only once; name each server once"},
    {errc::limit_differs, "limit_differs", by_lock,
     "others use the semaphore with another limit; use one limit everywhere, or resize it"},
    {errc::over_limit, "over_limit", by_lock,
     "more permits were asked for than the semaphore's limit; ask for fewer, or resize it"},
});

// A row is found by its number.
constexpr bool in_order() {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (static_cast<std::size_t>(rows[i].code) != i + 1) return false;
    }
    return true;
}
static_assert(in_order());

bool has(errc code, trait wanted) noexcept {
    const errc_row* const row = find_errc(code);
    return row != nullptr && (row->traits & wanted) != 0;
}

class holdfast_category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "holdfast"; }
    std::string message(int value) const override {
        const errc_row* const row = find_errc(static_cast<errc>(value));
        return row != nullptr ? row->message : "unknown holdfast error";
    }
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

std::span<const errc_row> errc_table() noexcept {
    return rows;
}

const errc_row* find_errc(errc code) noexcept {
    const auto number = static_cast<std::size_t>(code);
    return number >= 1 && number <= rows.size() ? &rows[number - 1] : nullptr;
}

bool is_plain_no(errc code) noexcept {
    return has(code, plain_no);
}

bool is_of_the_lock(errc code) noexcept {
    return has(code, by_lock);
}

bool is_silence(errc code) noexcept {
    return has(code, by_path);
}

bool may_pass(errc code) noexcept {
    return has(code, passing);
}

bool is_permanent(errc code) noexcept {
    return has(code, permanent);
}

bool spoils_link(errc code) noexcept {
    return has(code, spoils);
}

}  // namespace holdfast
