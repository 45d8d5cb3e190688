// The options of a client, a lock and a single call. Every field has a default that suits most programs.
#pragma once

#include <holdfast/errors.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/trace.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace holdfast {

/// The unit of all times in this interface.
using std::chrono::milliseconds;

/// How the name of a lock becomes a key in Redis.
enum class keys {
    tagged,  ///< `hf:{name}`: cannot collide with other programs' keys
    raw,     ///< the name itself, for locks shared with programs that use the plain SET NX PX form
};

/// How important a log line is.
enum class log_level {
    info,     ///< a normal event: a connection came up
    warning,  ///< an event to look into: a connection broke, a renewal failed, a hold was lost
};

/// Whether a client trusts a server that started, or took over from another one, less than `max_lease` ago. Such a
/// server may not know all holds that are still valid. docs/guarantees.md says which take-overs a client detects.
enum class restarted_server {
    trusted,    ///< it grants locks at once; a former holder may overlap with a new one until its next renewal
    mistrusted  ///< it grants nothing until every lease that it may have forgotten is over
};

/// What a client logs in with.
struct credentials {
    /// Empty: `default`.
    std::string user = {};
    /// Of that user. Never shown in a log line or an error.
    std::string password = {};
    /// How long they are valid from now on. The client asks for new ones when four fifths of it are over. None: they
    /// are used until a connection has to be made anew.
    std::optional<milliseconds> expires_in = {};
};

/// Gives the present credentials for a server, which is named as logs show it, without a password.
///
/// Runs on threads of its own, once at a time for each server and for up to eight servers at once, so it may block and
/// be slow; what needs the connection to that server waits for it meanwhile. It must not use the client that asks. If
/// it throws, the client logs the text of the exception (which must hold no secret) and uses the last credentials, if
/// there are any.
using credentials_source = std::function<credentials(const std::string& server)>;

/// The options of a client. They apply to everything that goes through it.
struct client_options {
    /// No lease is longer than this. All clients of a server must use the same value if they use
    /// restarted_server::mistrusted, and always if they use several servers.
    milliseconds max_lease{std::chrono::seconds(60)};
    /// Whether a server that started or took over a short while ago may grant locks. One of several servers never may.
    restarted_server after_restart = restarted_server::trusted;
    /// How long the server remembers the last token of a lock. Tokens keep growing even if the server's clock is set
    /// back by up to this time. At least max_lease. Every locked name takes about 150 bytes of server memory for this
    /// long; choose a shorter time if you use very many names once (docs/deployment.md).
    milliseconds fence_retention{std::chrono::hours(1)};
    /// `lost()` fires when only this part of the lease is left of a hold's validity. From 1 to 50.
    unsigned lost_margin_percent = 10;
    /// The maximum difference between the clocks of two servers of which one may replace the other. Replicas and
    /// read-write locks store absolute expiry times, so this is subtracted from the validity of every hold. At most a
    /// quarter of a lease, and together with `lost_margin_percent` at most three fifths of it.
    milliseconds clock_skew{0};
    /// How long a wait without a limit waits for a server, or a majority of several, that was never reached. Then it
    /// fails with the reason. From 1 ms to 24 h. `client` lists all rules about servers that cannot be reached.
    milliseconds first_connect{std::chrono::seconds(10)};
    /// How long a blocked caller looks for the server's answer before its thread sleeps: waking a sleeping core takes
    /// longer than a round trip on the same machine or in the same rack. Empty: the client learns how long answers
    /// take, looks about that long, seldom where looking is in vain, and spends at most a twentieth of the time on
    /// looks in vain. 0: never. At most 10 ms. An idle client never looks.
    std::optional<std::chrono::microseconds> spin = {};
    /// How often one owner may re-enter one lock.
    unsigned max_depth = 100'000;
    /// How many locks with `keep` or `passes` the client may hold unused. Beyond it the longest unused one is given
    /// back.
    std::size_t max_kept = 10'000;
    /// Where the client counts. Null: it does not count. Several clients may share one object.
    std::shared_ptr<holdfast::metrics> metrics = {};
    /// Receives what becomes of every lock, as spans. Runs where `log` runs, and is waited for as `log` is.
    /// `trace_to("trace.json")` writes a file for Perfetto.
    std::function<void(const trace_event&)> trace = {};
    /// Receives log lines for operators: broken connections, lost holds. Runs on a thread of the library. The last of
    /// client, locks and leases to be destroyed waits until all lines are delivered. No line contains a secret.
    std::function<void(log_level, const std::string&)> log = {};
    /// Gives user and password instead of the URL, for credentials that change. The client asks before each login of
    /// each connection, and again before they expire. Then it logs in anew on the living connection: no hold and no
    /// waiter notices. If the server refuses that, the connection goes on as before; the client logs it and asks again.
    /// The last of client, locks and leases to be destroyed waits until a running call has returned.
    credentials_source credentials = {};
    /// The same for the sentinels of a redis+sentinel:// URL. Without it they are told only what the URL says is for
    /// them.
    credentials_source sentinel_credentials = {};
};

/// The mode in which a lock is held.
enum class mode {
    exclusive,  ///< one holder: every hold of a mutex, and a hold that writes under a shared_mutex
    shared      ///< several holders: a hold that reads under a shared_mutex
};

/// Which waiters of a shared_mutex go first. All users of a lock should agree on it.
enum class prefer {
    arrival,  ///< first come, first served; adjacent readers in the queue acquire together
    readers,  ///< readers acquire whenever nobody writes; a writer waits until no reader is left
    writers   ///< while a live writer waits, no new reader acquires
};

/// Marks a kind of lock that has no preference to choose.
struct no_preference {};

/// Marks a kind of lock that has no `delay`.
struct no_delay {};

/// The options of a lock. Use them by the names `mutex_options` and `shared_mutex_options`: both declare every option
/// here, once, and stay aggregates, so that `{.lease = 5s, .renew = false}` initializes them.
template <typename Preference, typename Delay>
struct basic_lock_options {
    /// How long a hold lasts without renewal, in each mode. From 10 ms to the client's max_lease.
    milliseconds lease{std::chrono::seconds(30)};
    /// Whether the client renews holds in the background. Otherwise a hold ends with its lease.
    bool renew = true;
    /// How often the client repeats a request whose answer was lost with its connection. Acquiring and releasing count
    /// separately. Deadline and stop_token limit it, too.
    unsigned max_repeats = static_cast<unsigned>(-1);
    /// How many replicas must acknowledge a grant, an upgrade or a renewal before it counts. At most 15. A replica that
    /// acknowledged a hold still knows it after a promotion. If too few acknowledge a grant in time, the client undoes
    /// it and reports errc::not_replicated; it repeats a renewal. Uses one more connection, in a Cluster one to each
    /// primary whose locks require it. docs/guarantees.md says what happens while a slot moves. Re-entering through a
    /// lock object that requires more replicas fails with errc::not_replicated.
    unsigned replicas = 0;
    /// How long the replicas may take: from 1 ms to half the request timeout, at most 4 s. A request first waits for
    /// the end of an identical one in flight.
    milliseconds replica_timeout{100};
    /// How the name becomes a key. All users of a lock must use the same value.
    holdfast::keys keys = keys::tagged;
    /// With keys::raw: how long the lock may pass from waiter to waiter before its key stays free for a moment. Other
    /// programs poll for the key and would never find it free while holdfast clients queue. The moment lasts as long as
    /// this while other programs were seen to hold the lock recently. Otherwise it becomes shorter and rarer: queues of
    /// holdfast clients alone lose less than 5 % of their hand-overs. 0: never. Otherwise from 10 ms to 1 s.
    milliseconds yield_after{50};
    /// The text in front of the tagged key.
    std::string prefix = "hf:";
    /// How long the client goes on holding, and renewing, the lock after its last local release, as long as nobody else
    /// wants it. Acquiring it again in this process then sends nothing and takes less than a microsecond. Others are
    /// given the lock when they ask; after a crash they wait until the lease ends, even if the lock was only kept: use
    /// a short lease. 0: not at all. At most 24 h. Needs `renew`, and not `keys::raw`, whose programs cannot ask.
    milliseconds keep{0};
    /// While others wait: how many times in a row the lock may pass to the next waiter inside this process before it is
    /// handed over to them; at most for 10 ms, or a tenth of the lease. All waiters of the process then have one
    /// position in the queue together. 0: everybody waits in the order of arrival. Needs what `keep` needs.
    unsigned passes = 0;
    /// Of a mutex: how long the lock stays free of new holders after a hold has *expired*, because its client crashed
    /// or was cut off. Work that the former holder had begun, and cannot take back, has this time to end. A release
    /// frees the lock at once, as ever, and so does a holder that was told of the loss and has released since. The
    /// server's lease is `lease + delay`, which is at most the client's max_lease. 0: none. All users of a lock should
    /// agree on it.
    [[no_unique_address]] Delay delay = {};
    /// Of a shared_mutex: which waiters go first. Of a mutex there is nothing to choose.
    [[no_unique_address]] Preference prefer = {};
};

/// The options of a mutex.
using mutex_options = basic_lock_options<no_preference, milliseconds>;

/// The options of a shared_mutex.
using shared_mutex_options = basic_lock_options<prefer, no_delay>;

/// The options of a semaphore. It cannot be used with keys::raw, `keep` and `passes`.
using semaphore_options = basic_lock_options<no_preference, no_delay>;

/// What the server told about the lock when it was released; see `lease::release(afterwards&)`.
struct afterwards {
    /// How many holders the lock has now, including those it was just handed over to. Zero: the lock is free.
    std::size_t holders = 0;
    /// How many still wait.
    std::size_t waiters = 0;
};

/// The options of one upgrade.
struct upgrade_options {
    /// Blocking calls fill this if they return without success or throw. It must outlive the call.
    holdfast::refusal* why_not = nullptr;
    /// Cancels the wait. A grant that arrives later is given back in the background.
    std::stop_token stop = {};
};

/// The options of one acquisition.
struct acquire_options {
    /// The lease of this hold. Zero: that of the lock.
    milliseconds lease{0};
    /// Who acquires. Without one, each acquisition is an owner of its own.
    std::optional<holdfast::owner> owner = {};
    /// Blocking calls fill this if they return without the lock or throw. It must outlive the call. Asynchronous ones
    /// fill it before the handler runs, where `detail` names the lock and the server, which an error_code cannot; then
    /// it must live until the handler runs.
    holdfast::refusal* why_not = nullptr;
    /// Cancels the wait. A grant that arrives later is given back in the background.
    std::stop_token stop = {};
    /// A text for others to read: why the lock is held, by which job. Any bytes, at most 1024. It is stored with the
    /// hold, told to those who are refused (`refusal::note`) and by the tools, and removed with the hold. Everybody who
    /// may read the lock's keys can read it. Of a mutex or a shared_mutex without `keep` and `passes`, and not with
    /// keys::raw: otherwise errc::bad_option. An owner that re-enters keeps the note that it has. Empty: none. The
    /// client copies the text during the call.
    std::string_view note = {};
};

}  // namespace holdfast
