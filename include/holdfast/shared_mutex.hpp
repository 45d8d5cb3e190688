// The read-write lock.
#pragma once

#include <holdfast/lockable.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace holdfast {

/// A lock that many can have for reading, or one for writing. Writing is what `lockable` has; reading is here.
///
/// Every reader has a lease of its own: one that died stops counting when its own lease ends, however often others
/// renew theirs. Who goes first where readers and writers wait is chosen by `shared_mutex_options::prefer`.
///
/// An owner that reads and wants to write too upgrades its hold (R22): it waits, before everybody in line, until the
/// other readers have left; a second owner that wants the same gets errc::would_deadlock at once and keeps its read
/// hold. An owner that writes may read as well; when it has given up writing, it still reads. Use `lease::upgrade()`
/// and `lease::downgrade()`, or lock() by a thread that has lock_shared().
///
/// A reader that re-enters is never blocked by a writer that waits.
class HOLDFAST_EXPORT shared_mutex : public lockable {
public:
    /// Throws `error` with errc::bad_name or errc::bad_option. Sends nothing.
    shared_mutex(const client& client, const std::string& name, const shared_mutex_options& options = {});
    /// Releases what threads still hold by lock() or lock_shared() through this object, with a warning; see `lockable`.
    ~shared_mutex();

    /// Waits in line until the calling thread may read. Throws `error` if that cannot be.
    void lock_shared() { lock_as(mode::shared); }
    /// Reads if nobody writes and nobody who waits goes first. Throws `error` if the server cannot be asked.
    bool try_lock_shared() { return try_lock_as(mode::shared, milliseconds(0)); }
    /// Waits in line, at most so long.
    template <typename Rep, typename Period>
    bool try_lock_shared_for(std::chrono::duration<Rep, Period> wait) {
        return try_lock_as(mode::shared, detail::wait_time(wait));
    }
    /// Waits in line, at most until then.
    template <typename Clock, typename Duration>
    bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> deadline) {
        return try_lock_shared_for(deadline - Clock::now());
    }
    /// Gives up one level of the calling thread's reading, as `unlock()` does. Use `unlock_shared(ec)` to be told.
    void unlock_shared() noexcept { unlock_as(mode::shared); }
    /// Errors as of `lease::release()`, errc::not_held if the calling thread holds nothing, errc::held_other_mode if it
    /// only writes.
    void unlock_shared(boost::system::error_code& ec) noexcept { unlock_as(mode::shared, ec); }

    /// Waits in line until it may read. Throws `error`: errc::cancelled, or why it cannot be had.
    lease acquire_shared(acquire_options options = {}) {
        return acquire_as(mode::shared, detail::for_ever, std::move(options));
    }
    /// An empty lease if somebody writes or goes first. Throws `error` if the server cannot be asked.
    lease try_acquire_shared(acquire_options options = {}) {
        return acquire_as(mode::shared, milliseconds(0), std::move(options));
    }
    /// Waits in line, at most so long; an empty lease if that was not enough.
    template <typename Rep, typename Period>
    lease try_acquire_shared_for(std::chrono::duration<Rep, Period> wait, acquire_options options = {}) {
        return acquire_as(mode::shared, detail::wait_time(wait), std::move(options));
    }
    /// Waits in line, at most until then; an empty lease if that was not enough.
    template <typename Clock, typename Duration>
    lease try_acquire_shared_until(std::chrono::time_point<Clock, Duration> deadline, acquire_options options = {}) {
        return try_acquire_shared_for(deadline - Clock::now(), std::move(options));
    }

    /// As acquire_shared(), for any completion token; see `lockable::async_acquire`. Include <holdfast/async.hpp>.
    template <typename CompletionToken>
    auto async_acquire_shared(acquire_options options, CompletionToken&& token);
    /// The same with the lock's own lease, as an owner of its own.
    template <typename CompletionToken>
    auto async_acquire_shared(CompletionToken&& token);

    /// As try_acquire_shared(); errc::write_held or errc::reserved if that is not possible now.
    template <typename CompletionToken>
    auto async_try_acquire_shared(acquire_options options, CompletionToken&& token);
    /// The same with the lock's own lease, as an owner of its own.
    template <typename CompletionToken>
    auto async_try_acquire_shared(CompletionToken&& token);

    /// As try_acquire_shared_for(); errc::timed_out if that was not enough.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_shared_for(std::chrono::duration<Rep, Period> wait, acquire_options options,
                                      CompletionToken&& token);
    /// The same with the lock's own lease, as an owner of its own.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_shared_for(std::chrono::duration<Rep, Period> wait, CompletionToken&& token);

private:
    friend class striped_shared_mutex;
    shared_mutex(const client& client, const std::string& name, const api::named_setup& setup);
};

}  // namespace holdfast
