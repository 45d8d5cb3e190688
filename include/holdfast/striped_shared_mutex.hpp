// A read-write lock for names with very many readers.
#pragma once

#include <holdfast/shared_mutex.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {

namespace api {
class loss_of_any;
}

/// Holds all stripes of a striped_shared_mutex until it is released or destroyed: a lease that writes.
///
/// Thread safety: as of `lease`.
class HOLDFAST_EXPORT striped_lease {
public:
    /// An empty lease: holds nothing.
    striped_lease() noexcept;
    /// Releases without waiting, as `lease` does. Never throws.
    ~striped_lease();
    /// The hold moves. The other lease is empty afterwards.
    striped_lease(striped_lease&&) noexcept;
    /// Releases what this lease held before, as the destructor does.
    striped_lease& operator=(striped_lease&&) noexcept;
    striped_lease(const striped_lease&) = delete;
    striped_lease& operator=(const striped_lease&) = delete;

    /// True until released or moved from.
    explicit operator bool() const noexcept { return !leases_.empty(); }
    /// The largest token of the stripes. It grows from holder to holder as long as no server's clock is set back.
    std::uint64_t token() const noexcept;
    /// The shortest validity of the stripes.
    milliseconds validity() const noexcept;
    /// A stop is requested when the hold of any stripe is lost.
    std::stop_token lost() const noexcept;
    /// Releases all stripes, the last one first, and waits for the answers. Never throws.
    ///
    /// Errors: the first error of a stripe; see `lease::release()`.
    boost::system::error_code release() noexcept;

private:
    friend class striped_shared_mutex;
    explicit striped_lease(std::vector<lease> leases);
    void give_all_back() noexcept;

    std::vector<lease> leases_;  // in the order of acquisition
    std::unique_ptr<api::loss_of_any> loss_;
};

/// A shared_mutex spread over several keys, so that the readers of a hot name do not all use one key (on a Cluster: one
/// server). A reader acquires one stripe, chosen by its owner. A writer acquires all stripes, one after the other in a
/// fixed order. So reading costs as much as on a shared_mutex, and writing costs `stripes` times as much.
///
/// There is no upgrade: it would wait for the other stripes while their writers wait for this one. It fails with
/// errc::would_deadlock, and so does lock() on a thread that reads.
///
/// All users of a name must use the same number of stripes.
///
/// Errors: as of `lockable`. Thread safety: one object may be used by many threads.
class HOLDFAST_EXPORT striped_shared_mutex {
public:
    /// Makes a lock object with 1 to 1024 stripes. Sends nothing.
    ///
    /// Errors: throws `error` with errc::bad_name or errc::bad_option.
    striped_shared_mutex(const client& client, std::string name, std::size_t stripes,
                         shared_mutex_options options = {});
    /// Releases, with a warning in the log, what threads still hold by lock() or lock_shared() through this object; see
    /// `lockable`.
    ~striped_shared_mutex();
    striped_shared_mutex(const striped_shared_mutex&) = delete;
    striped_shared_mutex& operator=(const striped_shared_mutex&) = delete;

    /// The name as given to the constructor.
    const std::string& name() const noexcept { return name_; }
    /// How many keys the lock is spread over.
    std::size_t stripes() const noexcept { return stripes_.size(); }

    /// Waits until the calling thread holds all stripes.
    ///
    /// Errors: as of `lockable::lock()`. On failure all stripes are released.
    void lock();
    /// Acquires all stripes if they are free. Returns false, and holds nothing, otherwise.
    bool try_lock() { return try_lock_within(milliseconds(0)); }
    /// Waits for all stripes, at most `wait`. Returns false, and holds nothing, if that is not enough.
    template <typename Rep, typename Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> wait) {
        return try_lock_within(detail::wait_time(wait));
    }
    /// Waits for all stripes, at most until `deadline`. Returns false, and holds nothing, if that is not enough.
    template <typename Clock, typename Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> deadline) {
        return try_lock_for(deadline - Clock::now());
    }
    /// Releases all stripes, as `lockable::unlock()` does. Never throws.
    void unlock() noexcept;
    /// Waits until the calling thread may read; see `shared_mutex::lock_shared()`.
    void lock_shared() { mine().lock_shared(); }
    /// Acquires the lock for reading if nobody writes and no waiter goes first. Returns false otherwise.
    bool try_lock_shared() { return mine().try_lock_shared(); }
    /// Waits in the queue to read, at most `wait`. Returns false if the calling thread may not read then.
    template <typename Rep, typename Period>
    bool try_lock_shared_for(std::chrono::duration<Rep, Period> wait) {
        return mine().try_lock_shared_for(wait);
    }
    /// Waits in the queue to read, at most until `deadline`. Returns false if the calling thread may not read then.
    template <typename Clock, typename Duration>
    bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> deadline) {
        return mine().try_lock_shared_until(deadline);
    }
    /// Gives up one read level of the calling thread's hold. Never throws.
    void unlock_shared() noexcept { mine().unlock_shared(); }

    /// Waits until all stripes are acquired for writing.
    ///
    /// Errors and cancellation: as of `lockable::acquire()`. On failure all stripes are released.
    striped_lease acquire(acquire_options options = {}) { return acquire_within(detail::for_ever, std::move(options)); }
    /// Acquires all stripes if they are free. Returns an empty lease otherwise.
    striped_lease try_acquire(acquire_options options = {}) {
        return acquire_within(milliseconds(0), std::move(options));
    }
    /// Waits for all stripes, at most `wait`. Returns an empty lease if that is not enough.
    template <typename Rep, typename Period>
    striped_lease try_acquire_for(std::chrono::duration<Rep, Period> wait, acquire_options options = {}) {
        return acquire_within(detail::wait_time(wait), std::move(options));
    }

    /// Waits until one stripe is acquired for reading.
    ///
    /// Errors and cancellation: as of `shared_mutex::acquire_shared()`.
    lease acquire_shared(acquire_options options = {}) {
        shared_mutex& chosen = stripe_for(options);
        return chosen.acquire_shared(std::move(options));
    }
    /// Acquires one stripe for reading if nobody writes and no waiter goes first. Returns an empty lease otherwise.
    lease try_acquire_shared(acquire_options options = {}) {
        shared_mutex& chosen = stripe_for(options);
        return chosen.try_acquire_shared(std::move(options));
    }
    /// Waits in the queue to read, at most `wait`. Returns an empty lease if that is not enough.
    template <typename Rep, typename Period>
    lease try_acquire_shared_for(std::chrono::duration<Rep, Period> wait, acquire_options options = {}) {
        shared_mutex& chosen = stripe_for(options);
        return chosen.try_acquire_shared_for(wait, std::move(options));
    }

    /// acquire() with a completion token: void(boost::system::error_code, striped_lease). Needs <holdfast/async.hpp>.
    /// Errors and cancellation: as of `lockable::async_acquire`.
    template <typename CompletionToken>
    auto async_acquire(acquire_options options, CompletionToken&& token);
    /// acquire_shared() with a completion token: void(boost::system::error_code, lease). Needs <holdfast/async.hpp>.
    /// Errors and cancellation: as of `lockable::async_acquire`.
    template <typename CompletionToken>
    auto async_acquire_shared(acquire_options options, CompletionToken&& token);

private:
    struct take_all;
    bool try_lock_within(milliseconds wait);
    bool try_take_all(milliseconds wait, std::chrono::steady_clock::time_point deadline);
    static bool all_valid(const std::vector<lease>& leases) noexcept;
    striped_lease acquire_within(milliseconds wait, acquire_options options);
    shared_mutex& mine() noexcept;                                      // the stripe of the calling thread
    shared_mutex& stripe_for(const acquire_options& options) noexcept;  // that of the owner, or any
    static striped_lease bundle(std::vector<lease> leases) { return striped_lease(std::move(leases)); }

    std::string name_;
    std::vector<std::unique_ptr<shared_mutex>> stripes_;
};

}  // namespace holdfast
