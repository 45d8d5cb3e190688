// The connection to the servers that keep the locks.
#pragma once

#include <holdfast/errors.hpp>
#include <holdfast/export.hpp>
#include <holdfast/options.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

namespace api {
class core;
struct client_access;
}  // namespace api

/// The connection of a process to its server, or one connection to each of several servers. All locks made from a
/// client share it, and the requests of all threads are pipelined over it.
///
/// The client connects in the background and reconnects whenever the connection breaks. Locks and leases share what is
/// behind a client, so it may be destroyed before them.
///
/// A server that cannot be reached:
/// - A wait with a limit (`try_acquire_for`) also waits for the server, until its deadline.
/// - A wait without a limit (`acquire`, `lock`) waits `client_options::first_connect` for a server that was never
///   reached. Once the server was reached, it waits for it without a limit.
/// - A call that does not wait (`try_acquire`, `ping`) ends with its attempt to connect. Once the server was
///   reached, it waits for a broken connection until the request timeout.
///
/// Each then reports why the last attempt to connect failed: errc::connection_refused, errc::host_not_found,
/// errc::unreachable, errc::no_primary and the like; with several servers errc::no_quorum, and the reasons in the
/// text. With several servers, "reached" means that a majority was reached. Errors that no retry cures end every wait
/// at once: a wrong password (but see `client_options::credentials`), a missing right, a failed TLS handshake, a peer
/// that does not speak the protocol.
///
/// Thread safety: one object may be used by many threads. After fork() the child holds nothing: every operation on the
/// parent's client fails with errc::forked. The child needs a new client.
class HOLDFAST_EXPORT client {
public:
    /// Connects to `redis://`, `rediss://`, `unix://`, `redis+sentinel://` or `redis+cluster://`; docs/urls.md
    /// describes the form. Does not wait for the connection: the first operation reports a server that cannot be
    /// reached.
    ///
    /// Errors: throws `error` with errc::bad_url or errc::bad_option.
    explicit client(std::string_view url, client_options options = {});
    /// Connects to several independent servers. A lock is held while a majority of them grants it. Every kind of lock
    /// works on it unchanged; docs/guarantees.md says what it promises.
    ///
    /// Errors: throws `error` with errc::bad_url or errc::bad_option.
    explicit client(const std::vector<std::string>& urls, client_options options = {});
    /// Closes the connection if no lock and no lease is left that uses it.
    ~client();
    /// A client that was moved from can only be destroyed or assigned to.
    client(client&&) noexcept;
    /// Locks made from the former connection keep it.
    client& operator=(client&&) noexcept;
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    /// The server, or the servers, without passwords.
    std::string server() const;

    /// Asks every server for a sign of life and waits for a majority.
    ///
    /// Errors: throws `error` with the reason if a majority does not answer within the request timeout.
    void ping();

private:
    friend struct api::client_access;
    explicit client(std::shared_ptr<api::core> shared) noexcept : core_(std::move(shared)) {}

    std::shared_ptr<api::core> core_;
};

}  // namespace holdfast
