// Exclusive locking: all operations of a mutex, and those of a shared_mutex that write.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/wait_time.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

namespace api {
struct destroyed_lock;
struct lock_definition;
}  // namespace api

class lock_request;

/// A lock that one owner at a time can hold, across processes and machines. Made as a `mutex` or a `shared_mutex`.
///
/// There are two ways to use it. As a Lockable, with std::lock_guard and the like: the calling thread is the owner and
/// may re-enter. Or by `acquire` and its variants, which return a `lease` that may move between threads: each
/// acquisition is an owner of its own.
///
/// A hold belongs to its owner, not to the object: a thread may unlock through any object of the same name and client.
/// Destroying an object while a thread holds the lock releases, with a warning in the log, as many levels as were
/// locked through that object by lock() and its variants and not unlocked since. Leases are not affected: they may
/// outlive the object.
///
/// The queue is first come, first served: a newcomer never overtakes a waiter.
///
/// Errors: blocking calls throw `error`. Besides the codes named with each function: errc::unreachable,
/// errc::connection_refused, errc::no_quorum, errc::recovering and the other reasons why the servers cannot be asked or
/// refuse (see `client`); errc::would_deadlock on a thread of the library; errc::forked; errc::lost if the owner's
/// present hold is lost and not released yet; errc::too_deep; errc::cancelled after a stop request.
///
/// Cancellation: `acquire_options::stop` ends a wait. A grant that arrives later is given back in the background.
///
/// Thread safety: one object may be used by many threads. Two threads are two owners, even on one object.
class HOLDFAST_EXPORT lockable {
public:
    lockable(const lockable&) = delete;
    lockable& operator=(const lockable&) = delete;

    /// The name as given to the constructor, without prefix or tag.
    std::string_view name() const noexcept;

    /// The position of this lock in the order in which `lock_all` acquires several locks.
    std::string sort_key() const;

    /// Waits in the queue until the calling thread holds the lock. The thread may re-enter.
    void lock() { lock_as(mode::exclusive); }
    /// Acquires the lock for the calling thread if it is free. Returns false if another owner holds it.
    bool try_lock() { return try_lock_as(mode::exclusive, milliseconds(0)); }
    /// Waits in the queue, at most `wait`. Returns false if the calling thread does not hold the lock then.
    template <typename Rep, typename Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> wait) {
        return try_lock_as(mode::exclusive, detail::wait_time(wait));
    }
    /// Waits in the queue, at most until `deadline`. Returns false if the calling thread does not hold the lock then.
    template <typename Clock, typename Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> deadline) {
        return try_lock_for(deadline - Clock::now());
    }
    /// Gives up one level of the calling thread's hold. Does not wait: the release is on its way when it returns, and
    /// the client repeats it in the background if necessary. Never throws. `unlock(ec)` waits and reports.
    void unlock() noexcept { unlock_as(mode::exclusive); }
    /// Gives up one level of the calling thread's hold and waits for the answer. Never throws.
    ///
    /// Errors: those of `lease::release()`; errc::not_held if the calling thread does not hold the lock.
    void unlock(boost::system::error_code& ec) noexcept { unlock_as(mode::exclusive, ec); }

    /// Waits in the queue until the lock is acquired.
    lease acquire(acquire_options options = {}) {
        return acquire_as(mode::exclusive, detail::for_ever, std::move(options));
    }
    /// Acquires the lock if it is free. Returns an empty lease if another owner holds it.
    lease try_acquire(acquire_options options = {}) {
        return acquire_as(mode::exclusive, milliseconds(0), std::move(options));
    }
    /// Waits in the queue, at most `wait`. Returns an empty lease if the lock is not acquired then.
    template <typename Rep, typename Period>
    lease try_acquire_for(std::chrono::duration<Rep, Period> wait, acquire_options options = {}) {
        return acquire_as(mode::exclusive, detail::wait_time(wait), std::move(options));
    }
    /// Waits in the queue, at most until `deadline`. Returns an empty lease if the lock is not acquired then.
    template <typename Clock, typename Duration>
    lease try_acquire_until(std::chrono::time_point<Clock, Duration> deadline, acquire_options options = {}) {
        return try_acquire_for(deadline - Clock::now(), std::move(options));
    }

    /// acquire() with a completion token. The operations that begin with async_ need <holdfast/async.hpp>.
    ///
    /// Completion: void(boost::system::error_code, lease). The handler runs on its associated executor; without one, on
    /// a thread of the library.
    /// Errors: those of acquire(); asio::error::operation_aborted instead of errc::cancelled. Throws errc::bad_option
    /// and errc::forked at once.
    /// Cancellation: total, terminal and partial, and `acquire_options::stop`.
    template <typename CompletionToken>
    auto async_acquire(acquire_options options, CompletionToken&& token) {
        return initiate_acquire(mode::exclusive, detail::for_ever, std::move(options),
                                std::forward<CompletionToken>(token));
    }
    /// The same with default options.
    template <typename CompletionToken>
    auto async_acquire(CompletionToken&& token) {
        return initiate_acquire(mode::exclusive, detail::for_ever, {}, std::forward<CompletionToken>(token));
    }

    /// try_acquire() with a completion token. Completion and cancellation: as of async_acquire().
    /// Errors: those of async_acquire(); errc::busy if another owner holds the lock, of a shared_mutex errc::read_held
    /// or errc::write_held.
    template <typename CompletionToken>
    auto async_try_acquire(acquire_options options, CompletionToken&& token) {
        return initiate_acquire(mode::exclusive, milliseconds(0), std::move(options),
                                std::forward<CompletionToken>(token));
    }
    /// The same with default options.
    template <typename CompletionToken>
    auto async_try_acquire(CompletionToken&& token) {
        return initiate_acquire(mode::exclusive, milliseconds(0), {}, std::forward<CompletionToken>(token));
    }

    /// try_acquire_for() with a completion token. Completion and cancellation: as of async_acquire().
    /// Errors: those of async_acquire(); errc::timed_out if the lock is not acquired within `wait`.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_for(std::chrono::duration<Rep, Period> wait, acquire_options options,
                               CompletionToken&& token) {
        return initiate_acquire(mode::exclusive, detail::wait_time(wait), std::move(options),
                                std::forward<CompletionToken>(token));
    }
    /// The same with default options.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_for(std::chrono::duration<Rep, Period> wait, CompletionToken&& token) {
        return initiate_acquire(mode::exclusive, detail::wait_time(wait), {}, std::forward<CompletionToken>(token));
    }

protected:
    /// @cond internal: what mutex and shared_mutex are made of
    using acquire_completion = detail::completion<boost::system::error_code, lease>;

    lockable(const client& client, api::lock_definition lock);
    ~lockable();

    // Zero: does not wait. detail::for_ever: waits without a limit.
    void lock_as(mode kind);
    bool try_lock_as(mode kind, milliseconds wait);
    void unlock_as(mode kind) noexcept;
    void unlock_as(mode kind, boost::system::error_code& ec) noexcept;
    bool still_held() noexcept;  // by the calling thread
    // `whole`: the striped lock that this object belongs to; null: none.
    void release_what_threads_locked(std::shared_ptr<api::destroyed_lock> whole) noexcept;
    lease acquire_as(mode kind, milliseconds wait, acquire_options options);
    template <typename CompletionToken>
    auto initiate_acquire(mode kind, milliseconds wait, acquire_options options, CompletionToken&& token);
    void start_acquire(mode kind, milliseconds wait, acquire_options options,
                       std::unique_ptr<acquire_completion> handler);
    std::shared_ptr<api::core> shared_core() const;
    /// @endcond

private:
    friend class lock_all;

    // True: all are acquired. False: none is, as far as this call knows.
    static bool try_acquire_together(std::span<const lock_request> locks, const acquire_options& options,
                                     std::span<lease> out);
    bool can_go_with(const lockable& other) const;
    bool unlock_waiting(mode kind, boost::system::error_code& ec) noexcept;

    struct parts;
    std::unique_ptr<parts> parts_;
};

}  // namespace holdfast
