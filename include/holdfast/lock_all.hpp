// Several locks at once.
#pragma once

#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lockable.hpp>
#include <holdfast/options.hpp>
#include <holdfast/shared_mutex.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

namespace holdfast {

namespace api {
class loss_of_any;
}

/// A lock, and how `lock_all` is to acquire it. A lock by itself means exclusively.
class lock_request {
public:
    /// Acquires the lock exclusively.
    lock_request(lockable& lock) noexcept : lock_(lock) {}
    /// Acquires the lock exclusively.
    lock_request(std::reference_wrapper<lockable> lock) noexcept : lock_(lock) {}

    /// Acquires a read-write lock for reading.
    static lock_request to_read(shared_mutex& lock) noexcept {
        lock_request made(lock);
        made.mode_ = mode::shared;
        return made;
    }

    /// The lock.
    lockable& lock() const noexcept { return lock_; }
    /// In which mode.
    holdfast::mode how() const noexcept { return mode_; }

private:
    std::reference_wrapper<lockable> lock_;
    holdfast::mode mode_ = mode::exclusive;
};

/// How `lock_all` acquires a read-write lock to read: `lock_all both{stock, to_read(catalog)}`.
inline lock_request to_read(shared_mutex& lock) noexcept {
    return lock_request::to_read(lock);
}

/// Holds several locks, from construction to destruction: exclusively, or as `to_read()` says.
///
/// If all of them are free, that takes one round trip and one command, and one command for the release: for two to
/// eight plain mutexes of one client on one server (not in a Cluster; without `keep`, `passes`, `replicas` and
/// `keys::raw`). Otherwise:
///
/// The locks are acquired one after the other in a fixed order (by server, then by key), whatever their order in the
/// call, and each wait is in the queue. So callers with overlapping sets cannot deadlock, and every caller is served.
/// std::lock works too, but it tries and backs off, and under load it hardly ever finds all locks free at once. A lock
/// that is named twice is re-entered, also if one request is exclusive and the other one reads.
///
/// All locks are valid when the constructor returns. If one is lost during the wait for a later one, all are released
/// and acquired again: a lock with `renew = false` needs a lease that outlasts the wait for the others.
///
/// Errors: the constructors throw `error` if one lock cannot be acquired, as `lockable::acquire()` does; the locks
/// acquired before are released. errc::lost: an earlier hold of the owner is lost.
/// Cancellation: `acquire_options::stop`.
/// Thread safety: as of `lease`.
class HOLDFAST_EXPORT lock_all {
public:
    /// Waits until all locks are acquired.
    template <std::convertible_to<lock_request>... Others>
    explicit lock_all(lock_request first, Others&&... others)
        : lock_all(acquire_options(), first, std::forward<Others>(others)...) {}

    /// The same with a lease, an owner or a stop_token for all locks.
    template <std::convertible_to<lock_request>... Others>
    explicit lock_all(acquire_options options, lock_request first, Others&&... others)
        : lock_all(std::vector<lock_request>{first, lock_request(std::forward<Others>(others))...},
                   std::move(options)) {}

    /// The same for a number of locks that is known only at run time.
    explicit lock_all(std::vector<lock_request> locks, acquire_options options = {});
    /// The same, all of them exclusively.
    explicit lock_all(const std::vector<std::reference_wrapper<lockable>>& locks, acquire_options options = {})
        : lock_all(std::vector<lock_request>(locks.begin(), locks.end()), std::move(options)) {}

    /// Releases all, without waiting, as `lease` does.
    ~lock_all();
    /// The holds move. The other object holds nothing afterwards.
    lock_all(lock_all&&) noexcept;
    lock_all& operator=(lock_all&&) = delete;
    lock_all(const lock_all&) = delete;
    lock_all& operator=(const lock_all&) = delete;

    /// How many locks were named.
    std::size_t size() const noexcept { return leases_.size(); }
    /// The lease of the i-th lock, in the order in which they were named.
    const lease& operator[](std::size_t i) const { return leases_.at(i); }

    /// The shortest validity of the locks. Zero or less: at least one is not held any more.
    milliseconds validity() const noexcept;
    /// A stop is requested when the hold on any lock is lost, before its validity ends; see `lease::lost()`.
    std::stop_token lost() const noexcept;

private:
    void give_all_back() noexcept;

    std::vector<lease> leases_;  // in the order in which they were named
    std::unique_ptr<api::loss_of_any> loss_;
};

}  // namespace holdfast
