// Leader election: a mutex, the leader's value as its note, and watching it.
#pragma once

#include <holdfast/detail/wait_time.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/watch.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

/// Who leads.
struct leader {
    /// What it said of itself when it campaigned.
    std::string value = {};
    /// Grows from leader to leader. Give it to what the leader works on, so that a former leader can be refused.
    std::uint64_t token = 0;
    /// The hold id of the leadership.
    std::string id = {};
};

/// The leader that a sight of an election's mutex shows; none if it is free.
inline std::optional<leader> leader_in(const sight& seen) {
    return seen.is_free() ? std::nullopt : std::optional(leader{seen.note, seen.token, seen.holder});
}

/// The options of an election are those of its mutex. `lease` is how long a leader that crashed keeps others waiting;
/// with `delay` nobody leads for that time after it. All who take part should agree on them. A leader has a value, so
/// keys::raw, `keep` and `passes` are refused.
using election_options = mutex_options;

/// Elects one leader among all who campaign for a name. The leadership is a lease of the mutex of that name: it is
/// renewed, its `lost()` fires before anybody else can lead, and a leader that crashes is followed by the next
/// candidate in the queue when its lease is over.
///
/// The client must outlive this object. Thread safety: one object may be used by many threads.
class HOLDFAST_EXPORT election {
public:
    /// Sends nothing. Errors: throws `error` with errc::bad_name or errc::bad_option.
    election(const client& client, const std::string& name, const election_options& options = {});

    /// Waits in the queue and returns the leadership. The value, up to 1 KB, is told to observers.
    ///
    /// Errors, cancellation: as `mutex::acquire()`.
    lease campaign(std::string value, std::stop_token stop = {}) {
        return mutex_.acquire({.stop = std::move(stop), .note = value});
    }
    /// The same; an empty lease if it does not lead after this time.
    template <class Rep, class Period>
    lease try_campaign_for(std::chrono::duration<Rep, Period> wait, std::string value, std::stop_token stop = {}) {
        return mutex_.try_acquire_for(wait, {.stop = std::move(stop), .note = value});
    }
    /// campaign() with a completion token; needs <holdfast/async.hpp>. The value is copied before this returns.
    ///
    /// Completion: void(boost::system::error_code, lease). The handler runs on its associated executor; without one, on
    /// a thread of the library.
    /// Errors, cancellation: as `mutex::async_acquire()`.
    template <typename CompletionToken>
    auto async_campaign(std::string_view value, CompletionToken&& token) {
        return initiate_campaign(detail::for_ever, std::string(value), std::forward<CompletionToken>(token));
    }
    /// The same; errc::timed_out if it does not lead after this time.
    template <class Rep, class Period, typename CompletionToken>
    auto async_try_campaign_for(std::chrono::duration<Rep, Period> wait, std::string_view value,
                                CompletionToken&& token) {
        return initiate_campaign(detail::wait_time(wait), std::string(value), std::forward<CompletionToken>(token));
    }
    /// Hands over to the next candidate. Errors: as `lease::release()`.
    boost::system::error_code resign(lease& leadership) { return leadership.release(); }

    /// Asks once. None: nobody leads. Of several independent servers a majority has to say the same.
    ///
    /// Errors: throws `error` with errc::unreachable and the other reasons why the servers cannot be asked or refuse.
    std::optional<holdfast::leader> leader() const;

    /// Calls back with the leader, or with none: now and after every change, with growing tokens. `on_trouble` is told
    /// why nothing can be known at present. See `watch()`.
    [[nodiscard]] watching observe(std::function<void(const std::optional<holdfast::leader>&)> callback,
                                   std::function<void(const refusal&)> on_trouble = {}) const;
    /// The same for coroutines: `leader_in()` what `async_next()` tells. See `watch_stream`.
    [[nodiscard]] watch_stream observe_by_stream() const;

private:
    template <typename CompletionToken>
    auto initiate_campaign(milliseconds wait, std::string value, CompletionToken&& token);

    const client* where_;
    std::string name_;
    std::string prefix_;
    mutex mutex_;
};

}  // namespace holdfast
