// A read-write lock for names that very many read.
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
    /// Holds nothing.
    striped_lease() noexcept;
    /// Releases as `lease` does. Never throws.
    ~striped_lease();
    /// The hold moves; the other object holds nothing afterwards.
    striped_lease(striped_lease&&) noexcept;
    /// Releases what it holds first.
    striped_lease& operator=(striped_lease&&) noexcept;
    striped_lease(const striped_lease&) = delete;
    striped_lease& operator=(const striped_lease&) = delete;

    /// True until released or moved from.
    explicit operator bool() const noexcept { return !leases_.empty(); }
    /// The largest of the stripes' tokens. It grows from holder to holder as long as no server's clock is set back.
    std::uint64_t token() const noexcept;
    /// The shortest of the stripes' validities.
    milliseconds validity() const noexcept;
    /// Requested when the hold of any stripe is lost.
    std::stop_token lost() const noexcept;
    /// Gives all stripes up, the last one first, and tells the first thing that went wrong. Never throws.
    boost::system::error_code release() noexcept;

private:
    friend class striped_shared_mutex;
    explicit striped_lease(std::vector<lease> leases);
    void give_all_back() noexcept;

    std::vector<lease> leases_;  // in the order they were taken
    std::unique_ptr<api::loss_of_any> loss_;
};

/// A shared_mutex spread over several keys, so that readers of a hot name do not all meet at one (on a Cluster: at one
/// server). A reader takes one stripe, chosen by its owner; a writer takes all of them, one after the other in one
/// order, so reading is as cheap as on a shared_mutex and writing costs `stripes` times as much.
///
/// There is no upgrade: it would wait for the other stripes while they may wait for this one. It is refused with
/// errc::would_deadlock, and so is lock() by a thread that reads.
///
/// All who use a name must agree on the number of stripes. Thread safety: one object may be used by many threads.
class HOLDFAST_EXPORT striped_shared_mutex {
public:
    /// From 1 to 1024 stripes. Throws `error` with errc::bad_name or errc::bad_option. Sends nothing.
    striped_shared_mutex(const client& client, std::string name, std::size_t stripes,
                         shared_mutex_options options = {});
    /// Releases what threads still hold by lock() or lock_shared() through this object, with a warning; see `lockable`.
    ~striped_shared_mutex();
    striped_shared_mutex(const striped_shared_mutex&) = delete;
    striped_shared_mutex& operator=(const striped_shared_mutex&) = delete;

    /// As given to the constructor.
    const std::string& name() const noexcept { return name_; }
    /// How many keys it is spread over.
    std::size_t stripes() const noexcept { return stripes_.size(); }

    /// As of `lockable` and `shared_mutex`. Where a writer cannot have a stripe in time, those it has are given back.
    void lock();
    /// Takes all stripes if they are free.
    bool try_lock() { return try_lock_within(milliseconds(0)); }
    /// Waits for all stripes, at most so long.
    template <typename Rep, typename Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> wait) {
        return try_lock_within(detail::wait_time(wait));
    }
    /// Waits for all stripes, at most until then.
    template <typename Clock, typename Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> deadline) {
        return try_lock_for(deadline - Clock::now());
    }
    /// Gives all stripes up. Never throws.
    void unlock() noexcept;
    /// Reading, as of `shared_mutex`.
    void lock_shared() { mine().lock_shared(); }
    /// Reads if nobody writes and nobody who waits goes first.
    bool try_lock_shared() { return mine().try_lock_shared(); }
    /// Waits in line to read, at most so long.
    template <typename Rep, typename Period>
    bool try_lock_shared_for(std::chrono::duration<Rep, Period> wait) {
        return mine().try_lock_shared_for(wait);
    }
    /// Waits in line to read, at most until then.
    template <typename Clock, typename Duration>
    bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> deadline) {
        return mine().try_lock_shared_until(deadline);
    }
    /// Gives up one level of the calling thread's reading. Never throws.
    void unlock_shared() noexcept { mine().unlock_shared(); }

    /// Takes all stripes to write; waits, tries and throws as `lockable` does.
    striped_lease acquire(acquire_options options = {}) { return acquire_within(detail::for_ever, std::move(options)); }
    /// An empty lease if one of the stripes is not free.
    striped_lease try_acquire(acquire_options options = {}) {
        return acquire_within(milliseconds(0), std::move(options));
    }
    /// Waits for all stripes, at most so long; an empty lease if that was not enough.
    template <typename Rep, typename Period>
    striped_lease try_acquire_for(std::chrono::duration<Rep, Period> wait, acquire_options options = {}) {
        return acquire_within(detail::wait_time(wait), std::move(options));
    }

    /// Takes one stripe to read; waits, tries and throws as `shared_mutex` does.
    lease acquire_shared(acquire_options options = {}) {
        shared_mutex& chosen = stripe_for(options);
        return chosen.acquire_shared(std::move(options));
    }
    /// An empty lease if somebody writes or goes first.
    lease try_acquire_shared(acquire_options options = {}) {
        shared_mutex& chosen = stripe_for(options);
        return chosen.try_acquire_shared(std::move(options));
    }
    /// Waits in line, at most so long; an empty lease if that was not enough.
    template <typename Rep, typename Period>
    lease try_acquire_shared_for(std::chrono::duration<Rep, Period> wait, acquire_options options = {}) {
        shared_mutex& chosen = stripe_for(options);
        return chosen.try_acquire_shared_for(wait, std::move(options));
    }

    /// As acquire(). Completion: void(boost::system::error_code, striped_lease). Include <holdfast/async.hpp>.
    template <typename CompletionToken>
    auto async_acquire(acquire_options options, CompletionToken&& token);
    /// As acquire_shared(). Completion: void(boost::system::error_code, lease). Include <holdfast/async.hpp>.
    template <typename CompletionToken>
    auto async_acquire_shared(acquire_options options, CompletionToken&& token);

private:
    struct take_all;
    bool try_lock_within(milliseconds wait);
    bool try_take_all(milliseconds wait, std::chrono::steady_clock::time_point deadline);
    // While the last stripe was waited for, the first may have been lost.
    static bool all_valid(const std::vector<lease>& leases) noexcept;
    striped_lease acquire_within(milliseconds wait, acquire_options options);
    shared_mutex& mine() noexcept;                                      // the calling thread's
    shared_mutex& stripe_for(const acquire_options& options) noexcept;  // its owner's, or any
    static striped_lease bundle(std::vector<lease> leases) { return striped_lease(std::move(leases)); }

    std::string name_;
    std::vector<std::unique_ptr<shared_mutex>> stripes_;
};

}  // namespace holdfast
