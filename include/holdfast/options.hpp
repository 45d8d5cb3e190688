// What can be chosen for a client, a lock and a single call. Every field has a default that is right for most.
#pragma once

#include <holdfast/errors.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/owner.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast {

/// The unit of all times in this interface.
using std::chrono::milliseconds;

/// How the name of a lock becomes a key in Redis.
enum class keys {
    tagged,  ///< `hf:{name}`: cannot collide with other programs' keys
    raw,     ///< the name itself, for locks shared with programs that use the plain SET NX PX form
};

/// How much an operator should care.
enum class log_level {
    info,     ///< good to know: a link came up
    warning,  ///< look into it: a link broke, a renewal failed, a hold was lost
};

/// What to think of a server that was started, or took another's place, less than `max_lease` ago and so may not know
/// holds that are still believed in. docs/guarantees.md says which take-overs a client can tell.
enum class restarted_server {
    trusted,    ///< it takes part at once; a former holder may overlap with a new one until its next renewal
    mistrusted  ///< nothing is acquired on it until every lease it may have forgotten is over
};

/// For everything that goes through one client.
struct client_options {
    /// No lease is longer than this; the same for all clients of a server if they use
    /// restarted_server::mistrusted, and always where there are several servers.
    milliseconds max_lease{std::chrono::seconds(60)};
    /// Whether a server that was started, or took another's place, a short while ago may grant locks; one of several
    /// never may.
    restarted_server after_restart = restarted_server::trusted;
    /// How long tokens are remembered after their last use; they keep growing across a server clock that is
    /// set back by up to this much. At least max_lease. Every name that is locked takes about 150 bytes of the server's
    /// memory for this long: where very many names are used once, make it shorter (docs/deployment.md).
    milliseconds fence_retention{std::chrono::hours(1)};
    /// `lost()` fires when this part of the lease is all that is left of a hold's validity; from 1 to 50.
    unsigned lost_margin_percent = 10;
    /// By so much the clock of one server may be ahead of another's that takes its place. Replicas have the ends of
    /// leases as times of day, and read-write locks keep them so: this is taken off every hold's validity. At most a
    /// quarter of a lease, and with `lost_margin_percent` three fifths of it.
    milliseconds clock_skew{0};
    /// How long a wait without a limit waits for a server, or a majority of several, that was never reached; then it
    /// tells why. From 1 ms to 24 h. See `client` for all rules about servers that cannot be reached.
    milliseconds first_connect{std::chrono::seconds(10)};
    /// How often one owner may re-enter one lock.
    unsigned max_depth = 100'000;
    /// Counts into this while it is set; may be shared by several clients.
    std::shared_ptr<holdfast::metrics> metrics = {};
    /// Hears of what an operator may want to know: links that break, holds that are lost. Runs on a thread of the
    /// library's own. The last of client, locks and leases to be destroyed waits until it has heard everything. Never
    /// hears a secret.
    std::function<void(log_level, const std::string&)> log = {};
};

/// Why a lock was not had, for those who ask.
struct refusal {
    /// errc::busy or errc::timed_out where the call returned without the lock, otherwise what it threw.
    errc code = errc::busy;
    /// The hold id of the one who has it; empty if that is not the reason. Tells nothing to other programs' locks.
    std::string holder = {};
    /// How long the holder's lease still ran when the server answered; none: it has no expiry, or is not the reason.
    std::optional<milliseconds> holder_left = {};
    /// With errc::recovering: how long until enough servers vote; none: something else is the reason.
    std::optional<milliseconds> recovers_in = {};
};

/// For one mutex.
struct mutex_options {
    /// How long a hold lasts without renewal; from 10 ms to the client's max_lease.
    milliseconds lease{std::chrono::seconds(30)};
    /// Renew in the background while held. Without it the hold ends with its lease.
    bool renew = true;
    /// How often a request whose answer was lost with its connection is sent again, of acquiring and of releasing each.
    /// Deadline and stop_token bound it too.
    unsigned max_repeats = static_cast<unsigned>(-1);
    /// A grant or a renewal counts only when so many replicas of the server have it; at most 15. So a replica that has
    /// acknowledged a hold still knows it when it is promoted. A grant that too few have in time is undone and reported
    /// as errc::not_replicated; a renewal is not counted and tried again. Takes one connection more, in a Cluster
    /// one to each primary whose locks ask for it; docs/guarantees.md says what to know while a slot moves.
    /// Who holds the lock by an object that asks for fewer is refused by one that asks for more (errc::not_replicated).
    unsigned replicas = 0;
    /// How long the replicas may take: from 1 ms to half the request timeout, and 4 s at most. Who asks while the same
    /// question of others is under way waits for its end first.
    milliseconds replica_timeout{100};
    /// How the name becomes a key; the same for all who are to exclude each other.
    holdfast::keys keys = keys::tagged;
    /// With keys::raw: how long the lock may go from waiter to waiter before its key is left free for a moment. Other
    /// programs poll for the key, and would never find it free while holdfast clients queue. The moment is as long as
    /// this while other programs are seen to hold the lock, and shorter and rarer the longer none was: then queues
    /// of holdfast alone lose less than 5 % of their hand-overs. 0: never; otherwise from 10 ms to 1 s.
    milliseconds yield_after{50};
    /// Stands before the tagged key.
    std::string prefix = "hf:";
};

/// In what mode a lock is held.
enum class mode {
    exclusive,  ///< by one alone: every hold of a mutex, and one that writes under a shared_mutex
    shared      ///< with others: one that reads under a shared_mutex
};

/// Who goes first where readers and writers wait for one shared_mutex. All who use a lock should agree on it.
enum class prefer {
    arrival,  ///< first come, first served; readers that stand in line next to each other go in together
    readers,  ///< readers go in whenever nobody writes; a writer when no reader is left
    writers   ///< while a living writer waits, no new reader goes in
};

/// For one shared_mutex. The fields mean what they mean in `mutex_options`.
struct shared_mutex_options {
    /// How long each hold lasts without renewal, a reader's as well as a writer's.
    milliseconds lease{std::chrono::seconds(30)};
    /// Renew in the background while held.
    bool renew = true;
    /// How often a request whose answer was lost with its connection is sent again.
    unsigned max_repeats = static_cast<unsigned>(-1);
    /// So many replicas must have a grant, an upgrade or a renewal before it counts.
    unsigned replicas = 0;
    /// How long they may take.
    milliseconds replica_timeout{100};
    /// How the name becomes a key.
    holdfast::keys keys = keys::tagged;
    /// With keys::raw: after how long other programs get a turn.
    milliseconds yield_after{50};
    /// Stands before the tagged key.
    std::string prefix = "hf:";
    /// Who goes first where readers and writers wait.
    holdfast::prefer prefer = prefer::arrival;
};

/// What a release found, where the server told; see `lease::release(afterwards&)`.
struct afterwards {
    /// How many hold the lock now, those included to whom it was handed over just then. Zero: it is free.
    std::size_t holders = 0;
    /// How many still wait.
    std::size_t waiters = 0;
};

/// For one upgrade.
struct upgrade_options {
    /// Filled by blocking calls that return without success or throw; must outlive the call.
    holdfast::refusal* why_not = nullptr;
    /// Stops the waiting; what was got too late is given back.
    std::stop_token stop = {};
};

/// For one acquisition.
struct acquire_options {
    /// Zero: the lock's own.
    milliseconds lease{0};
    /// Who acquires. Without one each acquisition is an owner of its own.
    std::optional<holdfast::owner> owner = {};
    /// Filled by blocking calls that return without the lock or throw; must outlive the call.
    holdfast::refusal* why_not = nullptr;
    /// Stops the waiting; what was got too late is given back.
    std::stop_token stop = {};
};

}  // namespace holdfast
