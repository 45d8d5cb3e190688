// Several locks at once.
#pragma once

#include <holdfast/export.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lockable.hpp>
#include <holdfast/options.hpp>

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

/// Holds several locks, for itself alone, from construction to destruction.
///
/// They are taken one after the other in one order (by server, then by key), whatever the order they are
/// named in, and each is waited for in line: so callers with overlapping sets cannot wait for each other in a
/// circle, and none starves. std::lock works too, but it tries and backs off, and under load it
/// hardly ever finds all free at once. A lock that is named twice is re-entered.
///
/// All of them are valid when the constructor returns. Where one is lost while a later one is waited for, all are
/// released and acquired anew: a lock with a fixed lease (`renew = false`) needs one that outlasts the wait for the
/// others.
///
/// Throws `error` if one cannot be acquired; those acquired before are released. errc::lost: a hold that the owner had
/// before was lost meanwhile.
///
/// Thread safety: as of `lease`.
class HOLDFAST_EXPORT lock_all {
public:
    /// Waits for all of them, however long that takes.
    template <typename... Locks>
    explicit lock_all(lockable& first, Locks&... others) : lock_all(acquire_options(), first, others...) {}

    /// With a lease, an owner or a stop_token for all of them.
    template <typename... Locks>
    explicit lock_all(acquire_options options, lockable& first, Locks&... others)
        : lock_all(std::vector<std::reference_wrapper<lockable>>{first, others...}, std::move(options)) {}

    /// For a number of locks that is known at run time only.
    explicit lock_all(std::vector<std::reference_wrapper<lockable>> locks, acquire_options options = {});

    /// Releases in the opposite order.
    ~lock_all();
    /// The holds move; the other object holds nothing afterwards.
    lock_all(lock_all&&) noexcept;
    lock_all& operator=(lock_all&&) = delete;
    lock_all(const lock_all&) = delete;
    lock_all& operator=(const lock_all&) = delete;

    /// How many locks were named.
    std::size_t size() const noexcept { return leases_.size(); }
    /// The lease of the i-th lock, in the order they were named.
    const lease& operator[](std::size_t i) const { return leases_.at(i); }

    /// The shortest of their validities; zero or less: not all are held any more.
    milliseconds validity() const noexcept;
    /// Requested when the hold on any of them is lost, before its validity ends. Callbacks as of `lease::lost()`.
    std::stop_token lost() const noexcept;

private:
    void give_all_back() noexcept;

    std::vector<lease> leases_;       // as named
    std::vector<std::size_t> taken_;  // in the order they were taken
    std::unique_ptr<api::loss_of_any> loss_;
};

}  // namespace holdfast
