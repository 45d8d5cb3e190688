// What every lock can do when it is held by one alone: all of a mutex, and the writing half of a shared_mutex.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/wait_time.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

namespace api {
struct destroyed_lock;
struct named_setup;
}  // namespace api

/// A lock that one owner at a time can have, across processes and machines. Made as a `mutex` or a `shared_mutex`.
///
/// Two ways to use it. As a Lockable, with std::lock_guard and the like: the calling thread is the owner and
/// may re-enter. Or by `acquire` and its kin, which return a `lease` that may move between threads; each
/// acquisition is an owner of its own.
///
/// A hold belongs to its owner, not to the object: a thread may unlock through any object of the same name and client.
/// Destroying an object while a thread holds the lock releases, with a warning in the log, as many levels as were
/// locked through that object by lock() and its kin and not unlocked since. Leases are not affected: they may outlive
/// the object.
///
/// Waiters are served first come, first served; a newcomer never overtakes one who waits.
///
/// Thread safety: one object may be used by many threads. Two threads are two owners, even on one object.
class HOLDFAST_EXPORT lockable {
public:
    lockable(const lockable&) = delete;
    lockable& operator=(const lockable&) = delete;

    /// As given to the constructor, without prefix or tag.
    std::string_view name() const noexcept;

    /// Where this lock stands among all locks: the order in which several are taken. See `lock_all`.
    std::string sort_key() const;

    /// Waits in line until the calling thread holds the lock. Throws `error` if that cannot be.
    void lock() { lock_as(mode::exclusive); }
    /// Takes the lock if it is free. Throws `error` if the server cannot be asked.
    bool try_lock() { return try_lock_as(mode::exclusive, milliseconds(0)); }
    /// Waits in line, at most so long.
    template <typename Rep, typename Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> wait) {
        return try_lock_as(mode::exclusive, detail::wait_time(wait));
    }
    /// Waits in line, at most until then.
    template <typename Clock, typename Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> deadline) {
        return try_lock_for(deadline - Clock::now());
    }
    /// Gives up one level of the calling thread's hold. Never throws, and does not wait: the release is on its way when
    /// it returns, and goes on in the background if it must be repeated. Use `unlock(ec)` to wait and be told.
    void unlock() noexcept { unlock_as(mode::exclusive); }
    /// Errors as of `lease::release()`, and errc::not_held if the calling thread does not hold the lock.
    void unlock(boost::system::error_code& ec) noexcept { unlock_as(mode::exclusive, ec); }

    /// Waits in line until it is had. Throws `error`: errc::cancelled, or why it cannot be had.
    lease acquire(acquire_options options = {}) {
        return acquire_as(mode::exclusive, detail::for_ever, std::move(options));
    }
    /// An empty lease if somebody else has it. Throws `error` if the server cannot be asked.
    lease try_acquire(acquire_options options = {}) {
        return acquire_as(mode::exclusive, milliseconds(0), std::move(options));
    }
    /// Waits in line, at most so long; an empty lease if that was not enough.
    template <typename Rep, typename Period>
    lease try_acquire_for(std::chrono::duration<Rep, Period> wait, acquire_options options = {}) {
        return acquire_as(mode::exclusive, detail::wait_time(wait), std::move(options));
    }
    /// Waits in line, at most until then; an empty lease if that was not enough.
    template <typename Clock, typename Duration>
    lease try_acquire_until(std::chrono::time_point<Clock, Duration> deadline, acquire_options options = {}) {
        return try_acquire_for(deadline - Clock::now(), std::move(options));
    }

    /// As acquire(), for any completion token. Include <holdfast/async.hpp>.
    ///
    /// Completion: void(boost::system::error_code, lease). The handler runs on its associated executor, or on
    /// a thread of the library's own. Errors: what acquire() throws; asio::error::operation_aborted when
    /// stopped. Cancellation: total, terminal and partial. A grant that arrives after it is given back in the
    /// background.
    template <typename CompletionToken>
    auto async_acquire(acquire_options options, CompletionToken&& token);
    /// The same with the lock's own lease, as an owner of its own.
    template <typename CompletionToken>
    auto async_acquire(CompletionToken&& token);

    /// As try_acquire(); errc::busy (of a shared_mutex errc::read_held or errc::write_held) if somebody else has it.
    template <typename CompletionToken>
    auto async_try_acquire(acquire_options options, CompletionToken&& token);
    /// The same with the lock's own lease, as an owner of its own.
    template <typename CompletionToken>
    auto async_try_acquire(CompletionToken&& token);

    /// As try_acquire_for(); errc::timed_out if that was not enough.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_for(std::chrono::duration<Rep, Period> wait, acquire_options options,
                               CompletionToken&& token);
    /// The same with the lock's own lease, as an owner of its own.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_for(std::chrono::duration<Rep, Period> wait, CompletionToken&& token);

protected:
    /// @cond internal: what mutex and shared_mutex are made of
    using acquire_completion = detail::completion<boost::system::error_code, lease>;

    lockable(const client& client, const std::string& name, const api::named_setup& setup);
    ~lockable();

    // A wait of zero does not wait; detail::for_ever has no end.
    void lock_as(mode kind);
    bool try_lock_as(mode kind, milliseconds wait);
    void unlock_as(mode kind) noexcept;
    void unlock_as(mode kind, boost::system::error_code& ec) noexcept;
    bool still_held() noexcept;  // by the calling thread
    // Null: for this object alone.
    void release_what_threads_locked(std::shared_ptr<api::destroyed_lock> whole) noexcept;
    lease acquire_as(mode kind, milliseconds wait, acquire_options options);
    template <typename CompletionToken>
    auto initiate_acquire(mode kind, milliseconds wait, acquire_options options, CompletionToken&& token);
    void start_acquire(mode kind, milliseconds wait, acquire_options options,
                       std::unique_ptr<acquire_completion> handler);
    std::shared_ptr<api::core> shared_core() const;
    /// @endcond

private:
    bool unlock_waiting(mode kind, boost::system::error_code& ec) noexcept;

    struct parts;
    std::unique_ptr<parts> parts_;
};

}  // namespace holdfast
