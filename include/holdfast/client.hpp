// A process's connection to the server, or the servers, that keep its locks.
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
}

/// One connection (to each server), shared by all locks made from it, over which requests of all threads are pipelined.
///
/// The connection is made in the background and made anew whenever it breaks. Locks and leases share what is behind a
/// client, so it may be destroyed before them.
///
/// A server that cannot be reached:
/// - A bounded wait (`try_acquire_for`) waits for the server, too, until its deadline.
/// - An unbounded wait (`acquire`, `lock`) gives a server that was never reached `client_options::first_connect`. Once
///   the server was reached, it waits for it without a limit.
/// - What does not wait (`try_acquire`, `ping`) ends with its attempt to connect. Once the server was reached, it waits
///   for a broken link until the request timeout.
///
/// Each then reports why the last attempt to connect failed (errc::connection_refused, errc::host_not_found,
/// errc::unreachable, errc::no_primary and the like; with several servers errc::no_quorum, and the reasons in the
/// text). With several servers, reached means that a majority was. What no retry can cure ends every wait at once: a
/// wrong password, a missing right, TLS that fails, a peer that does not speak the protocol.
///
/// Thread safety: one object may be used by many threads. After fork() the child holds nothing: every
/// operation on the parent's client fails with errc::forked; make a new client there.
class HOLDFAST_EXPORT client {
public:
    /// Connects to `redis://`, `rediss://`, `unix://`, `redis+sentinel://` or `redis+cluster://`; see docs/urls.md for
    /// the whole form.
    ///
    /// Throws `error` with errc::bad_url or errc::bad_option. A server that cannot be reached is reported by
    /// the first operation, not here.
    explicit client(std::string_view url, client_options options = {});
    /// Connects to several independent servers: a lock is held while a majority of them grants it.
    ///
    /// Throws as the other one. Every lock kind works on it unchanged; see docs/guarantees.md for what it promises.
    explicit client(const std::vector<std::string>& urls, client_options options = {});
    ~client();
    /// A client that was moved from can only be destroyed or assigned to.
    client(client&&) noexcept;
    /// Locks made from the former connection keep it.
    client& operator=(client&&) noexcept;
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    /// The server, without its password.
    std::string server() const;

    /// Asks every server for a sign of life. Throws `error` with the reason if a majority gives none within the request
    /// timeout.
    void ping();

    /// Internal: over what is there already.
    explicit client(std::shared_ptr<api::core> shared) noexcept : core_(std::move(shared)) {}
    /// Internal: what locks share.
    const std::shared_ptr<api::core>& shared_core() const noexcept { return core_; }

private:
    std::shared_ptr<api::core> core_;
};

}  // namespace holdfast
