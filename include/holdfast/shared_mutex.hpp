// The read-write lock.
#pragma once

#include <holdfast/lockable.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace holdfast {

/// A lock that many owners can hold for reading, or one for writing. The operations of `lockable` write; those that
/// read are here.
///
/// Every reader has a lease of its own: a reader that died stops counting when its own lease ends, however often others
/// renew theirs. `shared_mutex_options::prefer` chooses which waiters go first.
///
/// An owner that reads and wants to write upgrades its hold. The upgrade waits, ahead of the queue, until all other
/// readers have released. A second owner that tries to upgrade gets errc::would_deadlock at once and keeps its read
/// hold. An owner that writes may also read; it still reads after it stopped writing. Use `lease::upgrade()` and
/// `lease::downgrade()`, or lock() on a thread that has lock_shared().
///
/// A waiting writer never blocks a reader that re-enters.
///
/// Errors, cancellation and thread safety: as of `lockable`.
class HOLDFAST_EXPORT shared_mutex : public lockable {
public:
    /// Makes a lock object. Sends nothing.
    ///
    /// Errors: throws `error` with errc::bad_name or errc::bad_option.
    shared_mutex(const client& client, const std::string& name, const shared_mutex_options& options = {});
    /// Releases, with a warning in the log, what threads still hold by lock() or lock_shared() through this object; see
    /// `lockable`.
    ~shared_mutex();

    /// Waits in the queue until the calling thread may read. The thread may re-enter.
    void lock_shared() { lock_as(mode::shared); }
    /// Acquires the lock for reading if nobody writes and no waiter goes first. Returns false otherwise.
    bool try_lock_shared() { return try_lock_as(mode::shared, milliseconds(0)); }
    /// Waits in the queue, at most `wait`. Returns false if the calling thread may not read then.
    template <typename Rep, typename Period>
    bool try_lock_shared_for(std::chrono::duration<Rep, Period> wait) {
        return try_lock_as(mode::shared, detail::wait_time(wait));
    }
    /// Waits in the queue, at most until `deadline`. Returns false if the calling thread may not read then.
    template <typename Clock, typename Duration>
    bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> deadline) {
        return try_lock_shared_for(deadline - Clock::now());
    }
    /// Gives up one read level of the calling thread's hold, as unlock() does. `unlock_shared(ec)` waits and reports.
    void unlock_shared() noexcept { unlock_as(mode::shared); }
    /// Gives up one read level of the calling thread's hold and waits for the answer. Never throws.
    ///
    /// Errors: those of `lease::release()`; errc::not_held if the calling thread holds nothing; errc::held_other_mode
    /// if it only writes.
    void unlock_shared(boost::system::error_code& ec) noexcept { unlock_as(mode::shared, ec); }

    /// Waits in the queue until the lock is acquired for reading.
    lease acquire_shared(acquire_options options = {}) {
        return acquire_as(mode::shared, detail::for_ever, std::move(options));
    }
    /// Acquires the lock for reading if nobody writes and no waiter goes first. Returns an empty lease otherwise.
    lease try_acquire_shared(acquire_options options = {}) {
        return acquire_as(mode::shared, milliseconds(0), std::move(options));
    }
    /// Waits in the queue, at most `wait`. Returns an empty lease if the lock is not acquired then.
    template <typename Rep, typename Period>
    lease try_acquire_shared_for(std::chrono::duration<Rep, Period> wait, acquire_options options = {}) {
        return acquire_as(mode::shared, detail::wait_time(wait), std::move(options));
    }
    /// Waits in the queue, at most until `deadline`. Returns an empty lease if the lock is not acquired then.
    template <typename Clock, typename Duration>
    lease try_acquire_shared_until(std::chrono::time_point<Clock, Duration> deadline, acquire_options options = {}) {
        return try_acquire_shared_for(deadline - Clock::now(), std::move(options));
    }

    /// acquire_shared() with a completion token. Completion, errors and cancellation: as of `lockable::async_acquire`.
    template <typename CompletionToken>
    auto async_acquire_shared(acquire_options options, CompletionToken&& token) {
        return initiate_acquire(mode::shared, detail::for_ever, std::move(options),
                                std::forward<CompletionToken>(token));
    }
    /// The same with default options.
    template <typename CompletionToken>
    auto async_acquire_shared(CompletionToken&& token) {
        return initiate_acquire(mode::shared, detail::for_ever, {}, std::forward<CompletionToken>(token));
    }

    /// try_acquire_shared() with a completion token. Completion and cancellation: as of `lockable::async_acquire`.
    /// Errors: those of `lockable::async_acquire`; errc::write_held or errc::reserved if the caller may not read now.
    template <typename CompletionToken>
    auto async_try_acquire_shared(acquire_options options, CompletionToken&& token) {
        return initiate_acquire(mode::shared, milliseconds(0), std::move(options),
                                std::forward<CompletionToken>(token));
    }
    /// The same with default options.
    template <typename CompletionToken>
    auto async_try_acquire_shared(CompletionToken&& token) {
        return initiate_acquire(mode::shared, milliseconds(0), {}, std::forward<CompletionToken>(token));
    }

    /// try_acquire_shared_for() with a completion token. Completion and cancellation: as of `lockable::async_acquire`.
    /// Errors: those of `lockable::async_acquire`; errc::timed_out if the lock is not acquired within `wait`.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_shared_for(std::chrono::duration<Rep, Period> wait, acquire_options options,
                                      CompletionToken&& token) {
        return initiate_acquire(mode::shared, detail::wait_time(wait), std::move(options),
                                std::forward<CompletionToken>(token));
    }
    /// The same with default options.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_shared_for(std::chrono::duration<Rep, Period> wait, CompletionToken&& token) {
        return initiate_acquire(mode::shared, detail::wait_time(wait), {}, std::forward<CompletionToken>(token));
    }

private:
    friend class striped_shared_mutex;
    shared_mutex(const client& client, api::lock_definition lock);
};

}  // namespace holdfast
