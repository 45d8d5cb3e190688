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

/// What is known of a lock at one moment.
struct sight {
    /// The hold id of the holder. Empty: the lock is free.
    std::string holder = {};
    /// The holder's note; see `acquire_options::note`.
    std::string note = {};
    /// The last token that was granted: the holder's, while there is one. 0: not known.
    std::uint64_t token = 0;
    /// What was left of the holder's lease. None: it has no end, or the lock is free.
    std::optional<std::chrono::milliseconds> left = {};

    /// True if nobody holds the lock.
    bool is_free() const noexcept { return holder.empty(); }
    /// When the holder acquired it, by the server's clock. None: the lock is free, or it is not known.
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
/// client could ask, the change in between may be left out. A hold that expires is told when its lease is over.
///
/// The callback runs on the client's callback thread, one call at a time, and should not block for long. It may use the
/// client, destroy the `watching`, and must not throw.
///
/// Others pay nothing for it: while a lock is watched, its release and its grant publish one message for each watcher.
/// For a `mutex` on one server, with sentinels or on a Cluster.
///
/// Errors: throws `error` with errc::bad_name, errc::forked, or errc::bad_option: with several independent servers,
/// whose sights would have to be made one.
[[nodiscard]] HOLDFAST_EXPORT watching watch(const client& client, const std::string& name,
                                             std::function<void(const sight&)> callback,
                                             const watch_options& options = {});

}  // namespace holdfast
