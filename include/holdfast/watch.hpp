// Watching a lock without wanting it: who holds it, now and after every change.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/errors.hpp>
#include <holdfast/export.hpp>
#include <holdfast/options.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace holdfast {

namespace api {
class core;
class latest_sight;
}  // namespace api
namespace detail {
template <typename... Results>
class completion;
}

/// What is known of a lock at one moment.
struct sight {
    /// The hold id of the holder. Empty: the lock is free.
    std::string holder = {};
    /// The holder's note; see `acquire_options::note`.
    std::string note = {};
    /// The last token that was granted: the holder's, while there is one. 0: not known, as of a holder without a note
    /// that acquired the lock before the first watch and longer ago than `client_options::fence_retention`.
    std::uint64_t token = 0;
    /// What was left of the holder's lease. None: it has no end, or the lock is free.
    std::optional<std::chrono::milliseconds> left = {};

    /// True if nobody holds the lock.
    bool is_free() const noexcept { return holder.empty(); }
    /// When the holder acquired it, by the server's clock. None: the lock is free, or it is not known. Of a kept lock
    /// (`keep`, `passes`) it is the last moment at which it may have: the token moves with each renewal.
    std::optional<std::chrono::system_clock::time_point> since() const {
        if (is_free() || token == 0) return std::nullopt;
        return std::chrono::system_clock::time_point(std::chrono::microseconds(static_cast<std::int64_t>(token)));
    }
};

/// The options of `watch()`.
struct watch_options {
    /// The text in front of the lock's key, as in `mutex_options::prefix`.
    std::string prefix = "hf:";
    /// Is told why nothing can be known at present: no server, no right, a lock of another kind. Once, until something
    /// is known again. Runs where the callback runs. The watching goes on.
    std::function<void(const refusal&)> on_trouble = {};
};

/// Watches as long as it exists. Thread safety: as an int.
class HOLDFAST_EXPORT watching {
public:
    /// Watches nothing.
    watching() noexcept;
    /// Leaves an object that watches nothing.
    watching(watching&&) noexcept;
    /// Stops what was watched before.
    watching& operator=(watching&&) noexcept;
    /// As stop().
    ~watching();

    /// After this no callback begins. Waits for one that runs, unless it is called by that one.
    void stop() noexcept;

private:
    struct parts;
    explicit watching(std::unique_ptr<parts> made) noexcept;
    friend HOLDFAST_EXPORT watching watch(const client& client, const std::string& name,
                                          std::function<void(const sight&)> callback, const watch_options& options);

    std::unique_ptr<parts> parts_;
};

/// Calls back with the holder of that mutex, or that it is free: now, and after every change, in order. No grant is
/// told after one with a greater token, also across reconnects and failovers. If the lock changes twice before the
/// client could ask, or while the callback runs, the change in between may be left out. A hold that expires is told
/// when its lease is over. A grant of a lock with `replicas` may be told that the replicas do not acknowledge and that
/// is then undone: its token protects nothing.
///
/// The callback runs on the client's callback thread, one call at a time, and should not block for long. It may use the
/// client, destroy the `watching`, and must not throw.
///
/// Others pay nothing for it: while a lock is watched, its release and its grant publish one message for each watcher.
/// For a `mutex` on every arrangement of servers. With several independent servers it tells what a majority of them has
/// with the same holder and token; where no majority has the same, nothing.
///
/// Errors: throws `error` with errc::bad_name or errc::forked.
[[nodiscard]] HOLDFAST_EXPORT watching watch(const client& client, const std::string& name,
                                             std::function<void(const sight&)> callback,
                                             const watch_options& options = {});

/// Watches a lock as `watch()` does; the caller asks for each change, for example in a coroutine. Of several changes
/// between two questions it tells only the last, so a slow reader costs no memory and is never behind.
///
/// Destroy it before its client. Thread safety: as an int.
class HOLDFAST_EXPORT watch_stream {
public:
    /// Begins to watch. Errors: those of `watch()`.
    watch_stream(const client& client, const std::string& name, const std::string& prefix = "hf:");
    /// Leaves an object that is only good for being assigned to or destroyed.
    watch_stream(watch_stream&&) noexcept;
    /// Stops what was watched before.
    watch_stream& operator=(watch_stream&&) noexcept;
    /// As stop().
    ~watch_stream();

    /// Waits until there is something to tell that no call has told yet; the first call tells the present holder.
    /// Needs <holdfast/async.hpp>.
    ///
    /// Completion: void(boost::system::error_code, sight). The handler runs on its associated executor; without one, on
    /// a thread of the library.
    /// Errors: why nothing can be known at present, as `watch_options::on_trouble` tells it, once: the watching goes
    /// on, and the next call waits until something is known. asio::error::already_started if another call waits;
    /// asio::error::operation_aborted after stop(). Throws errc::forked at once.
    /// Cancellation: total, terminal and partial. What it would have told, the next call tells.
    template <typename CompletionToken>
    auto async_next(CompletionToken&& token);

    /// Ends the watching. A call that waits ends with asio::error::operation_aborted.
    void stop() noexcept;

private:
    using next_completion = detail::completion<boost::system::error_code, sight>;

    void start_next(std::unique_ptr<next_completion> handler);
    const std::shared_ptr<api::core>& shared_core() const noexcept { return where_; }

    std::shared_ptr<api::core> where_;
    std::shared_ptr<api::latest_sight> latest_;
    watching watching_;  // ends first
};

}  // namespace holdfast
