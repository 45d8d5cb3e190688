// The exclusive lock.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/wait_time.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace holdfast {

/// A lock that one owner at a time can have, across processes and machines.
///
/// Two ways to use it. As a Lockable, with std::lock_guard and the like: the calling thread is the owner and
/// may re-enter. Or by `acquire` and its kin, which return a `lease` that may move between threads; each
/// acquisition is an owner of its own.
///
/// Waiters are served first come, first served; a newcomer never overtakes one who waits.
///
/// Thread safety: one object may be used by many threads. Two threads are two owners, even on one object.
class HOLDFAST_EXPORT mutex {
public:
    /// Throws `error` with errc::bad_name or errc::bad_option. Sends nothing.
    mutex(const client& client, std::string name, mutex_options options = {});
    ~mutex();
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;

    /// As given to the constructor, without prefix or tag.
    const std::string& name() const noexcept;

    /// Where this lock stands among all locks: the order in which several are taken. See `lock_all`.
    std::string place_in_order() const;

    /// Waits in line until the calling thread holds the lock. Throws `error` if that cannot be.
    void lock();
    /// Takes the lock if it is free. Throws `error` if the server cannot be asked.
    bool try_lock();
    /// Waits in line, at most so long.
    template <typename Rep, typename Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> wait) {
        return try_lock_within(detail::wait_time(wait));
    }
    /// Waits in line, at most until then.
    template <typename Clock, typename Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> deadline) {
        return try_lock_for(deadline - Clock::now());
    }
    /// Gives up one level of the calling thread's hold. Never throws; use `unlock(ec)` to be told.
    void unlock() noexcept;
    /// Errors as of `lease::release()`, and errc::not_held if the calling thread does not hold the lock.
    void unlock(boost::system::error_code& ec) noexcept;

    /// Waits in line until it is had. Throws `error`: errc::cancelled, or why it cannot be had.
    lease acquire(acquire_options options = {});
    /// An empty lease if somebody else has it. Throws `error` if the server cannot be asked.
    lease try_acquire(acquire_options options = {});
    /// Waits in line, at most so long; an empty lease if that was not enough.
    template <typename Rep, typename Period>
    lease try_acquire_for(std::chrono::duration<Rep, Period> wait, acquire_options options = {}) {
        return try_acquire_within(detail::wait_time(wait), std::move(options));
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
    /// The same with the mutex's own lease, as an owner of its own.
    template <typename CompletionToken>
    auto async_acquire(CompletionToken&& token);

    /// As try_acquire(); errc::busy if somebody else has it.
    template <typename CompletionToken>
    auto async_try_acquire(acquire_options options, CompletionToken&& token);
    /// The same with the mutex's own lease, as an owner of its own.
    template <typename CompletionToken>
    auto async_try_acquire(CompletionToken&& token);

    /// As try_acquire_for(); errc::timed_out if that was not enough.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_for(std::chrono::duration<Rep, Period> wait, acquire_options options,
                               CompletionToken&& token);
    /// The same with the mutex's own lease, as an owner of its own.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_for(std::chrono::duration<Rep, Period> wait, CompletionToken&& token);

private:
    struct parts;
    using acquire_completion = detail::completion<boost::system::error_code, lease>;

    bool try_lock_within(milliseconds wait);
    lease try_acquire_within(milliseconds wait, acquire_options options);
    template <typename CompletionToken>
    auto initiate_acquire(milliseconds wait, acquire_options options, CompletionToken&& token);
    void start_acquire(milliseconds wait, acquire_options options, std::unique_ptr<acquire_completion> handler);
    std::shared_ptr<api::core> shared_core() const;

    // For start_acquire(): a wait that has no end.
    static constexpr milliseconds for_ever = milliseconds::max();

    std::unique_ptr<parts> parts_;
};

}  // namespace holdfast
