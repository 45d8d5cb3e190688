// The semaphore: a number of permits, shared by processes and machines.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/wait_time.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

namespace api {
struct lock_definition;
}  // namespace api

/// One of the holders of a semaphore, as the server knows it.
struct semaphore_holder {
    /// The hold id.
    std::string id = {};
    /// How many permits it has.
    std::size_t permits = 1;
    /// The token of its grant.
    std::uint64_t token = 0;
    /// How long its lease still runs.
    milliseconds left{0};
};

/// At most `limit` permits are held at any time, across processes and machines. An acquisition takes one permit or
/// several and returns a `lease`, as that of a mutex: it is renewed in the background, reports a loss by `lost()`, and
/// returns exactly its permits when it is released or destroyed. The permits of a holder that crashes are free when its
/// lease ends.
///
/// The names are those of std::counting_semaphore where they fit. There is no release() of a number: a permit belongs
/// to a lease, so a crash loses no permit, and a second release adds none.
///
/// The queue is first come, first served, also for large requests: one that waits for many permits is not overtaken by
/// requests for few. One release may admit several waiters.
///
/// A semaphore is not re-entrant: each acquisition takes permits of its own, also in the same thread. A thread that
/// holds permits and waits for more may wait for itself.
///
/// Tokens grow with every grant. With a limit above 1 they do not fence: several holders are valid at a time, and the
/// greatest token says nothing about the others.
///
/// All users of a name must declare the same limit; see resize(). It works on one server, with sentinels, with replicas
/// and on a Cluster. With several independent servers the constructor refuses: a majority for each holder does not
/// bound the sum of the permits (with three servers and a limit of 2, three holders can have two servers each).
///
/// Errors: blocking calls throw `error`. Besides the codes named with each function: errc::limit_differs if others use
/// the semaphore with another limit; errc::over_limit if more permits are asked for than the limit; errc::wrong_type if
/// the name belongs to another kind of lock; errc::unreachable and the other reasons why the server cannot be asked or
/// refuses (see `client`); errc::would_deadlock on a thread of the library; errc::forked; errc::cancelled after a stop
/// request.
///
/// Cancellation: `acquire_options::stop` ends a wait. A grant that arrives later is given back in the background.
///
/// Thread safety: one object may be used by many threads.
class HOLDFAST_EXPORT semaphore {
public:
    /// Makes a semaphore object with `limit` permits, from 1 to 1,000,000,000. Sends nothing.
    ///
    /// Errors: throws `error` with errc::bad_name; or errc::bad_option, also for a client of several independent
    /// servers, for keys::raw, and for `keep` and `passes`.
    semaphore(const client& client, const std::string& name, std::size_t limit, const semaphore_options& options = {});
    /// Leases are not affected: they may outlive the object.
    ~semaphore();
    semaphore(const semaphore&) = delete;
    semaphore& operator=(const semaphore&) = delete;

    /// The name as given to the constructor, without prefix or tag.
    std::string_view name() const noexcept;
    /// The limit as given to the constructor.
    std::size_t limit() const noexcept;

    /// Waits in the queue until the permits are acquired.
    ///
    /// Errors: see above; errc::bad_option if `permits` is 0 or if `options` has an owner: permits belong to leases.
    lease acquire(std::size_t permits = 1, acquire_options options = {}) {
        return acquire_within(detail::for_ever, permits, std::move(options));
    }
    /// Acquires the permits if they are free and nobody waits before. Returns an empty lease otherwise.
    lease try_acquire(std::size_t permits = 1, acquire_options options = {}) {
        return acquire_within(milliseconds(0), permits, std::move(options));
    }
    /// Waits in the queue, at most `wait`. Returns an empty lease if the permits are not acquired then.
    template <typename Rep, typename Period>
    lease try_acquire_for(std::chrono::duration<Rep, Period> wait, std::size_t permits = 1,
                          acquire_options options = {}) {
        return acquire_within(detail::wait_time(wait), permits, std::move(options));
    }
    /// Waits in the queue, at most until `deadline`. Returns an empty lease if the permits are not acquired then.
    template <typename Clock, typename Duration>
    lease try_acquire_until(std::chrono::time_point<Clock, Duration> deadline, std::size_t permits = 1,
                            acquire_options options = {}) {
        return try_acquire_for(deadline - Clock::now(), permits, std::move(options));
    }

    /// acquire() with a completion token. The operations that begin with async_ need <holdfast/async.hpp>.
    ///
    /// Completion: void(boost::system::error_code, lease). The handler runs on its associated executor; without one, on
    /// a thread of the library.
    /// Errors: those of acquire(); asio::error::operation_aborted instead of errc::cancelled. Throws errc::bad_option
    /// and errc::forked at once.
    /// Cancellation: total, terminal and partial, and `acquire_options::stop`.
    template <typename CompletionToken>
    auto async_acquire(std::size_t permits, acquire_options options, CompletionToken&& token) {
        return initiate_acquire(detail::for_ever, permits, std::move(options), std::forward<CompletionToken>(token));
    }
    /// The same with default options.
    template <typename CompletionToken>
    auto async_acquire(std::size_t permits, CompletionToken&& token) {
        return initiate_acquire(detail::for_ever, permits, {}, std::forward<CompletionToken>(token));
    }
    /// The same for one permit.
    template <typename CompletionToken>
    auto async_acquire(CompletionToken&& token) {
        return initiate_acquire(detail::for_ever, 1, {}, std::forward<CompletionToken>(token));
    }

    /// try_acquire() with a completion token. Completion and cancellation: as of async_acquire().
    /// Errors: those of async_acquire(); errc::busy if too few permits are free, errc::reserved if a waiter goes first.
    template <typename CompletionToken>
    auto async_try_acquire(std::size_t permits, acquire_options options, CompletionToken&& token) {
        return initiate_acquire(milliseconds(0), permits, std::move(options), std::forward<CompletionToken>(token));
    }
    /// The same with default options.
    template <typename CompletionToken>
    auto async_try_acquire(std::size_t permits, CompletionToken&& token) {
        return initiate_acquire(milliseconds(0), permits, {}, std::forward<CompletionToken>(token));
    }

    /// try_acquire_for() with a completion token. Completion and cancellation: as of async_acquire().
    /// Errors: those of async_acquire(); errc::timed_out if the permits are not acquired within `wait`.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_for(std::chrono::duration<Rep, Period> wait, std::size_t permits, acquire_options options,
                               CompletionToken&& token) {
        return initiate_acquire(detail::wait_time(wait), permits, std::move(options),
                                std::forward<CompletionToken>(token));
    }
    /// The same with default options.
    template <typename Rep, typename Period, typename CompletionToken>
    auto async_try_acquire_for(std::chrono::duration<Rep, Period> wait, std::size_t permits, CompletionToken&& token) {
        return initiate_acquire(detail::wait_time(wait), permits, {}, std::forward<CompletionToken>(token));
    }

    /// Replaces the limit that counts, for all users. What they declare stays, so programs that run go on, and programs
    /// that start need not know. Holders keep what they have: a smaller limit admits nobody until enough came back, and
    /// waiters for more than it are refused with errc::over_limit. The server remembers the new limit while anybody
    /// holds or waits, and for `client_options::fence_retention` after that. If several resize at a time, one of the
    /// limits counts.
    ///
    /// Errors: those named above; errc::bad_option if the limit is 0; errc::timed_out if others resized it again and
    /// again at the same time.
    void resize(std::size_t limit);

    /// How many permits are free now: the present limit less what is out. Asks the server.
    ///
    /// Errors: errc::request_timed_out and the other reasons why the server cannot be asked.
    std::size_t available() const;
    /// The present holders of permits, the oldest grant first. Asks the server. Errors: those of available().
    std::vector<semaphore_holder> holders() const;

private:
    using acquire_completion = detail::completion<boost::system::error_code, lease>;

    lease acquire_within(milliseconds wait, std::size_t permits, acquire_options options);
    template <typename CompletionToken>
    auto initiate_acquire(milliseconds wait, std::size_t permits, acquire_options options, CompletionToken&& token);
    void start_acquire(milliseconds wait, std::size_t permits, acquire_options options,
                       std::unique_ptr<acquire_completion> handler);
    std::shared_ptr<api::core> shared_core() const;

    struct parts;
    std::unique_ptr<parts> parts_;
};

}  // namespace holdfast
