// Leader election: a mutex, the leader's value as its note, and watching it.
#pragma once

#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/watch.hpp>

#include <functional>
#include <optional>
#include <string>
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

/// The options of an election. All who take part should agree on them.
struct election_options {
    /// How long a leader that crashed keeps others waiting.
    std::chrono::milliseconds lease{std::chrono::seconds(30)};
    /// As in `mutex_options`.
    unsigned replicas = 0;
    /// As in `mutex_options`.
    std::string prefix = "hf:";
};

/// Elects one leader among all who campaign for a name. The leadership is a lease of the mutex of that name: it is
/// renewed, its `lost()` fires before anybody else can lead, and a leader that crashes is followed by the next
/// candidate in the queue when its lease is over.
///
/// Thread safety: one object may be used by many threads.
class HOLDFAST_EXPORT election {
public:
    /// Errors: throws `error` with errc::bad_name or errc::bad_option.
    election(const client& client, const std::string& name, const election_options& options = {})
        : where_(&client),
          name_(name),
          prefix_(options.prefix),
          mutex_(client, name, {.lease = options.lease, .replicas = options.replicas, .prefix = options.prefix}) {}

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
    /// Hands over to the next candidate. Errors: as `lease::release()`.
    boost::system::error_code resign(lease& leadership) { return leadership.release(); }

    /// Asks once. None: nobody leads. With several independent servers: errc::bad_option.
    std::optional<holdfast::leader> leader() const;

    /// Calls back with the leader, or with none: now and after every change, with growing tokens. The client must
    /// outlive this object. See `watch()`.
    [[nodiscard]] watching observe(std::function<void(const std::optional<holdfast::leader>&)> callback) const {
        return watch(*where_, name_,
                     [told = std::move(callback)](const sight& seen) {
                         told(seen.is_free() ? std::nullopt
                                             : std::optional(holdfast::leader{seen.note, seen.token, seen.holder}));
                     },
                     {.prefix = prefix_});
    }

private:
    const client* where_;
    std::string name_;
    std::string prefix_;
    mutex mutex_;
};

}  // namespace holdfast
