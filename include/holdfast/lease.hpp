// A hold on a lock, as a value.
#pragma once

#include <holdfast/detail/wait_time.hpp>
#include <holdfast/errors.hpp>
#include <holdfast/export.hpp>
#include <holdfast/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast {

namespace api {
class core;
class hold_face;
struct lease_access;
}  // namespace api

namespace detail {
template <typename... Results>
class completion;
}

/// Holds a lock until it is released or destroyed. May move between threads. May outlive client and mutex.
///
/// Thread safety: `lost()`, `validity()` and `token()` may be called from any thread while no other thread moves,
/// releases or destroys the object.
class HOLDFAST_EXPORT lease {
public:
    /// An empty lease: holds nothing.
    lease() noexcept;
    /// Releases without waiting: the release is on its way when the destructor returns, and the client repeats it in
    /// the background if necessary. Never throws. `release()` waits and reports. Only the last of client, locks and
    /// leases waits for releases in flight, at most as long as `release()` would.
    ~lease();
    /// The hold moves. The other lease is empty afterwards.
    lease(lease&&) noexcept;
    /// Releases what this lease held before, as the destructor does.
    lease& operator=(lease&&) noexcept;
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;

    /// True until released or moved from, even if the hold is lost: `lost()` and `validity()` tell that.
    explicit operator bool() const noexcept { return face_ != nullptr; }

    /// Whether this lease reads or writes. An empty lease: exclusive.
    holdfast::mode mode() const noexcept { return mode_; }

    /// The fencing token: larger than that of every earlier grant of this lock. The resource that the lock protects
    /// should refuse smaller tokens. An upgrade brings a new token for all leases of that hold. An empty lease: 0.
    std::uint64_t token() const noexcept;

    /// How long the holder may still rely on the hold, by the clock of this machine. Zero or less: not any more.
    milliseconds validity() const noexcept;

    /// A stop is requested when the hold is lost, before its validity ends. Callbacks run on a thread of the library
    /// and may call the library.
    std::stop_token lost() const;

    /// The id of the hold on the wire: the value of the lock's key.
    std::string id() const;

    /// Asks the server how many waiters the queue of this lock has now.
    ///
    /// Errors: throws `error`; errc::not_held on an empty lease, otherwise why the server cannot be asked.
    std::size_t waiters() const;

    /// Extends the hold to a full lease now, whether the client renews it in the background or not. Waits for the
    /// answer. Never throws.
    ///
    /// Errors: errc::lost, errc::unreachable, errc::request_timed_out, and what the server may refuse.
    boost::system::error_code renew() noexcept;

    /// Releases the lock and waits for the answer. The lease is empty afterwards, whatever the answer. Never throws.
    ///
    /// Errors: errc::lost, errc::not_held, errc::held_by_other: the hold was already over; errc::outcome_unknown: no
    /// answer in time, the release continues in the background.
    boost::system::error_code release() noexcept;
    /// The same. `left_behind` tells who holds the lock and who waits after the release. Both are zero if the server
    /// did not report them: on failure, or if the same owner still holds the lock by another lease.
    boost::system::error_code release(afterwards& left_behind) noexcept;

    /// Makes a hold that reads write as well. Waits, ahead of the queue, until all other readers have released.
    ///
    /// The lease that is returned writes. This lease keeps reading, whatever the result. When the writing lease is
    /// released, the hold reads again.
    ///
    /// Errors: throws `error`: errc::would_deadlock if another owner waits for an upgrade already (release the read
    /// hold, so that one of the two can continue) or if the lock is striped; errc::lost if the hold is lost;
    /// errc::cancelled; errc::held_other_mode if this lease writes; errc::not_held if it is empty. Cancellation:
    /// `upgrade_options::stop`. A grant that arrives later is given back in the background.
    lease upgrade(upgrade_options options = {}) { return upgrade_within(detail::for_ever, std::move(options)); }
    /// Upgrades if no other owner reads. Returns an empty lease otherwise. Errors: those of upgrade().
    lease try_upgrade(upgrade_options options = {}) { return upgrade_within(milliseconds(0), std::move(options)); }
    /// Upgrades within `wait`. Returns an empty lease if other owners still read then. Errors: those of upgrade().
    template <typename Rep, typename Period>
    lease try_upgrade_for(std::chrono::duration<Rep, Period> wait, upgrade_options options = {}) {
        return upgrade_within(detail::wait_time(wait), std::move(options));
    }
    /// Upgrades before `deadline`, as try_upgrade_for() does.
    template <typename Clock, typename Duration>
    lease try_upgrade_until(std::chrono::time_point<Clock, Duration> deadline, upgrade_options options = {}) {
        return try_upgrade_for(deadline - Clock::now(), std::move(options));
    }
    /// The former name of try_upgrade_for().
    template <typename Rep, typename Period>
    lease upgrade_for(std::chrono::duration<Rep, Period> wait, upgrade_options options = {}) {
        return try_upgrade_for(wait, std::move(options));
    }
    /// The former name of try_upgrade_until().
    template <typename Clock, typename Duration>
    lease upgrade_until(std::chrono::time_point<Clock, Duration> deadline, upgrade_options options = {}) {
        return try_upgrade_until(deadline, std::move(options));
    }

    /// Turns a lease that writes into one that reads, in one step: no other owner can write in between, and waiting
    /// readers acquire. This lease is empty afterwards.
    ///
    /// Does not wait long: if the server does not answer, the client repeats the request in the background, and the
    /// lease that is returned reads already.
    ///
    /// Errors: throws `error`: errc::held_other_mode if this lease reads or belongs to a mutex (then it is unchanged);
    /// errc::not_held if it is empty.
    lease downgrade();

    /// renew() with a completion token. The operations that begin with async_ need <holdfast/async.hpp>.
    ///
    /// Completion: void(boost::system::error_code). Errors: those of renew(). Cancellation: none.
    template <typename CompletionToken>
    auto async_renew(CompletionToken&& token) {
        return initiate<>(&lease::start_renew, std::forward<CompletionToken>(token));
    }

    /// release() with a completion token. The lease is empty at once.
    ///
    /// Completion: void(boost::system::error_code). Errors: those of release(). Cancellation: none.
    template <typename CompletionToken>
    auto async_release(CompletionToken&& token) {
        return initiate<>(&lease::start_release, std::forward<CompletionToken>(token));
    }

    /// upgrade() with a completion token.
    ///
    /// Completion: void(boost::system::error_code, lease). The lease writes.
    /// Errors: those of upgrade(); asio::error::operation_aborted instead of errc::cancelled.
    /// Cancellation: as of `lockable::async_acquire`.
    template <typename CompletionToken>
    auto async_upgrade(CompletionToken&& token) {
        return initiate_upgrade(detail::for_ever, std::forward<CompletionToken>(token));
    }
    /// The same without waiting. Errors: those of async_upgrade(); errc::read_held if other owners read.
    template <typename CompletionToken>
    auto async_try_upgrade(CompletionToken&& token) {
        return initiate_upgrade(milliseconds(0), std::forward<CompletionToken>(token));
    }
    /// The same within `wait`. Errors: those of async_upgrade(); errc::timed_out if other owners still read then.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_upgrade_for(std::chrono::duration<Rep, Period> wait, CompletionToken&& token) {
        return initiate_upgrade(detail::wait_time(wait), std::forward<CompletionToken>(token));
    }
    /// The former name of async_try_upgrade_for().
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_upgrade_for(std::chrono::duration<Rep, Period> wait, CompletionToken&& token) {
        return async_try_upgrade_for(wait, std::forward<CompletionToken>(token));
    }

    /// downgrade() with a completion token. This lease is empty at once.
    ///
    /// Completion: void(boost::system::error_code, lease). The lease reads, even if the server has not confirmed it.
    /// Errors: those of downgrade(); errc::outcome_unknown if the request goes on in the background. Cancellation:
    /// none.
    template <typename CompletionToken>
    auto async_downgrade(CompletionToken&& token) {
        return initiate<lease>(&lease::start_downgrade, std::forward<CompletionToken>(token));
    }

private:
    friend struct api::lease_access;
    lease(std::shared_ptr<api::hold_face> face, holdfast::mode kind) noexcept;

    lease upgrade_within(milliseconds wait, upgrade_options options);
    lease upgrade_locally(milliseconds wait, upgrade_options options);
    lease no_upgrade(const refusal& why, milliseconds wait, const upgrade_options& options);
    // Starts an operation that completes with an error_code and `Results`.
    template <typename... Results, typename Start, typename CompletionToken>
    auto initiate(Start start, CompletionToken&& token);
    template <typename CompletionToken>
    auto initiate_upgrade(milliseconds wait, CompletionToken&& token) {
        const auto start = [wait](lease& self, auto handler) { self.start_upgrade(wait, std::move(handler)); };
        return initiate<lease>(start, std::forward<CompletionToken>(token));
    }
    void start_upgrade(milliseconds wait,
                       std::unique_ptr<detail::completion<boost::system::error_code, lease>> handler);
    void start_downgrade(std::unique_ptr<detail::completion<boost::system::error_code, lease>> handler);
    void post_release() noexcept;
    const std::shared_ptr<api::core>& shared_core() const noexcept { return core_; }
    void start_renew(std::unique_ptr<detail::completion<boost::system::error_code>> handler);
    void start_release(std::unique_ptr<detail::completion<boost::system::error_code>> handler);

    std::shared_ptr<api::core> core_;  // while face_ is set
    std::shared_ptr<api::hold_face> face_;
    holdfast::mode mode_ = holdfast::mode::exclusive;
};

}  // namespace holdfast
