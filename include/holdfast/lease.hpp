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

/// Holds a lock until it is released or destroyed. May move between threads; may outlive client and mutex.
///
/// Thread safety: `lost()`, `validity()`, `token()` may be called from any thread while no other thread
/// moves, releases or destroys the object.
class HOLDFAST_EXPORT lease {
public:
    /// Holds nothing.
    lease() noexcept;
    /// Releases without waiting: the release is on its way when it returns, and goes on in the background if it must be
    /// repeated. Never throws. Use `release()` to wait and be told. Only the last of client, locks and leases waits for
    /// what is under way, at most as long as `release()` would.
    ~lease();
    /// The hold moves; the other lease is empty afterwards.
    lease(lease&&) noexcept;
    /// Releases what this lease held before, as the destructor does.
    lease& operator=(lease&&) noexcept;
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;

    /// True until released or moved from, even if the hold was lost meanwhile: ask `lost()` or `validity()` for that.
    explicit operator bool() const noexcept { return face_ != nullptr; }

    /// Whether this lease reads or writes. An empty one: exclusive.
    holdfast::mode mode() const noexcept { return mode_; }

    /// The fencing token: larger than that of every earlier grant of this lock. Have what the lock protects
    /// refuse smaller ones. An upgrade brings a new one, for all leases of that hold.
    std::uint64_t token() const noexcept;

    /// How long the holder may still believe in it, by this machine's clock; zero or less: no longer.
    milliseconds validity() const noexcept;

    /// Requested when the hold is lost, before its validity ends. Callbacks run on a thread of the library's
    /// own and may call the library.
    std::stop_token lost() const;

    /// The hold's id on the wire: what the key of the lock holds.
    std::string id() const;

    /// How many wait in line behind this hold, as the server sees it now: a question of its own, not free.
    ///
    /// Throws `error` if the server cannot be asked, errc::not_held on an empty lease.
    std::size_t waiters() const;

    /// Makes the lease full again now, whether it is renewed in the background or not.
    ///
    /// Errors: errc::lost, errc::unreachable and what the server may refuse. Never throws.
    boost::system::error_code renew() noexcept;

    /// Gives the lock up and tells how that went. The lease is empty afterwards, whatever the answer.
    ///
    /// Errors: errc::lost, errc::not_held, errc::held_by_other: it had ended before; errc::outcome_unknown:
    /// no answer in time, the release goes on in the background. Never throws.
    boost::system::error_code release() noexcept;
    /// The same, and tells who is left. Zeros where the server did not tell: on failure, or when the same owner still
    /// holds the lock by another lease.
    boost::system::error_code release(afterwards& left_behind) noexcept;

    /// Has a lease that reads write as well: waits, before everybody in line, until all other readers have left.
    ///
    /// The lease that is returned writes; this one goes on reading, whatever comes of it. When the writing one is
    /// released, the hold is a reading one again. Throws `error`: errc::would_deadlock if somebody else waits for an
    /// upgrade already (give up reading, so that one of the two can go on), errc::lost if reading was lost meanwhile,
    /// errc::cancelled; errc::held_other_mode if this lease writes, errc::would_deadlock on a striped lock.
    lease upgrade(upgrade_options options = {}) { return upgrade_within(detail::for_ever, std::move(options)); }
    /// An empty lease if others read. Throws as upgrade().
    lease try_upgrade(upgrade_options options = {}) { return upgrade_within(milliseconds(0), std::move(options)); }
    /// Waits at most so long; an empty lease if that was not enough. Throws as upgrade().
    template <typename Rep, typename Period>
    lease upgrade_for(std::chrono::duration<Rep, Period> wait, upgrade_options options = {}) {
        return upgrade_within(detail::wait_time(wait), std::move(options));
    }
    /// Waits at most until then; an empty lease if that was not enough. Throws as upgrade().
    template <typename Clock, typename Duration>
    lease upgrade_until(std::chrono::time_point<Clock, Duration> deadline, upgrade_options options = {}) {
        return upgrade_for(deadline - Clock::now(), std::move(options));
    }

    /// Turns a lease that writes into one that reads, in one step: nobody else can write in between, and readers that
    /// wait come in. This lease is empty afterwards.
    ///
    /// Never blocks for long: if the server does not answer, it is told in the background, and the lease that is
    /// returned reads already. Throws `error`: errc::held_other_mode if this lease reads or is a mutex's (then it stays
    /// as it is), errc::not_held if it is empty.
    lease downgrade();

    /// As renew(). Completion: void(boost::system::error_code). Include <holdfast/async.hpp>.
    template <typename CompletionToken>
    auto async_renew(CompletionToken&& token);

    /// As release(): the lease is empty at once, the handler hears how it went. Include <holdfast/async.hpp>.
    /// Completion: void(boost::system::error_code).
    template <typename CompletionToken>
    auto async_release(CompletionToken&& token);

    /// As upgrade(), try_upgrade() and upgrade_for(). Completion: void(boost::system::error_code, lease), the lease
    /// being the writing one. Errors: what those throw, and errc::read_held or errc::timed_out. Cancellation as of
    /// `lockable::async_acquire`. Include <holdfast/async.hpp>.
    template <typename CompletionToken>
    auto async_upgrade(CompletionToken&& token);
    /// As try_upgrade().
    template <typename CompletionToken>
    auto async_try_upgrade(CompletionToken&& token);
    /// As upgrade_for().
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_upgrade_for(std::chrono::duration<Rep, Period> wait, CompletionToken&& token);

    /// As downgrade(): this lease is empty at once. Completion: void(boost::system::error_code, lease); the lease reads
    /// even if the server has not confirmed it. Include <holdfast/async.hpp>.
    template <typename CompletionToken>
    auto async_downgrade(CompletionToken&& token);

private:
    friend struct api::lease_access;
    lease(std::shared_ptr<api::hold_face> face, holdfast::mode kind) noexcept;

    lease upgrade_within(milliseconds wait, upgrade_options options);
    template <typename CompletionToken>
    auto initiate_upgrade(milliseconds wait, CompletionToken&& token);
    void start_upgrade(milliseconds wait,
                       std::unique_ptr<detail::completion<boost::system::error_code, lease>> handler);
    void start_downgrade(std::unique_ptr<detail::completion<boost::system::error_code, lease>> handler);
    void post_release() noexcept;
    const std::shared_ptr<api::core>& shared_core() const noexcept { return core_; }
    void start_renew(std::unique_ptr<detail::completion<boost::system::error_code>> handler);
    void start_release(std::unique_ptr<detail::completion<boost::system::error_code>> handler);

    std::shared_ptr<api::core> core_;  // while there is a face
    std::shared_ptr<api::hold_face> face_;
    holdfast::mode mode_ = holdfast::mode::exclusive;
};

}  // namespace holdfast
