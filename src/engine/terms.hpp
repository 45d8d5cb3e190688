// The words that requests and answers are made of, between the engine and the layer above. Every file of the engine
// includes it, and with it the std headers that all of them use.
#pragma once

#include "base/clock.hpp"
#include "redis/session/command.hpp"
#include "wire/hold_id.hpp"
#include "wire/requests.hpp"

#include <holdfast/errors.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::engine {

using holdfast::refusal;
using std::chrono::milliseconds;
using wire::client_id;
using wire::hold_id;
using wire::is_ours;
using wire::lock_keys;
using wire::lock_kind;
using wire::preference;
using wire::shape;

using fencing_token = std::uint64_t;

// Who may re-enter. 0 is nobody: every acquisition is an owner of its own.
enum class owner_id : std::uint64_t { nobody = 0 };

enum class waiting : std::uint8_t { not_at_all, in_queue };

// One level of a hold. An owner may have several of both kinds at once.
enum class access : std::uint8_t { exclusive, shared };

// None is the rule: takes the room of a pointer.
using rare_refusal = std::unique_ptr<const refusal>;

enum class how : std::uint8_t { asked, handed_over };

// How long to wait for a lock.
struct patience {
    waiting wait = waiting::in_queue;
    instant deadline = never;  // of the waiting; with waiting::not_at_all, of the request
};

enum class renewal : std::uint8_t { automatic, none };
enum class upgrades : std::uint8_t { allowed, refused };

// What a lock is like: every choice that is made once for a lock object and holds for all its acquisitions.
//
// One struct, copied as a whole from the lock object to the acquisition and to the hold: a new option needs a field
// here and in the public options, and nothing in between. An acquisition with a lease of its own changes `lease` in its
// copy. A client may have a hundred thousand holds, so the fields are as small as their ranges allow.
struct lock_options {
    std::chrono::milliseconds lease{30000};
    // How long the lock stays free of new holders after a hold has expired. The server cannot tell an expired key from
    // a deleted one, so its lease is longer by this than the one that the client counts.
    std::uint32_t delay_ms = 0;
    // How often a request whose answer was lost with its link is sent again. Acquiring and releasing count separately.
    unsigned max_repeats = static_cast<unsigned>(-1);
    // Of a lock whose key other programs use, too: after this time they get a turn; 0: never.
    std::uint16_t yield_after_ms = 0;
    // Of the first stripe of a striped lock: the number of stripes. Their keys follow its own. An owner that reads one
    // of them does not wait to write: the holders that it would wait for may wait for it.
    std::uint16_t stripes = 0;
    std::uint16_t replica_timeout_ms = 0;
    std::uint8_t replicas = 0;  // that must acknowledge a grant or a renewal before it counts
    std::uint32_t limit = 1;    // of a semaphore: how many permits there are
    std::uint32_t permits = 1;  // of a semaphore: how many are asked for
    wire::lock_kind kind = wire::lock_kind::mutex;
    wire::preference prefer = wire::preference::arrival;
    upgrades upgrading = upgrades::allowed;
    renewal renewing = renewal::automatic;
    // The hold may be asked back: nodes at which this client can hear that know it by a marked id.
    bool kept = false;
    // A text for others, stored with the hold; null: none.
    std::shared_ptr<const std::string> note = {};

    std::chrono::milliseconds lease_at_server() const noexcept { return lease + std::chrono::milliseconds(delay_ms); }

    redis::acknowledgement acknowledged_by() const noexcept {
        return {replicas, std::chrono::milliseconds(replica_timeout_ms)};
    }

    friend bool operator==(const lock_options&, const lock_options&) = default;
};

// What a hold is like, for as long as it exists.
struct hold_terms {
    std::shared_ptr<const lock_keys> keys;
    lock_options options = {};
    owner_id owner = owner_id::nobody;
    access want = access::exclusive;
};

// What an acquisition is to be like.
struct acquire_terms {
    std::shared_ptr<const lock_keys> keys;
    lock_options options = {};
    access want = access::exclusive;
    owner_id owner = owner_id::nobody;
    patience limit = {};

    hold_terms of_hold() const { return {keys, options, owner, want}; }
};

struct engine_settings {
    milliseconds request_timeout{2000};
    // A wait without a limit gives nodes that were never reached this long.
    milliseconds first_connect{10'000};
    milliseconds fence_retention{3600 * 1000};
    // A hold is told to be lost this part of a lease before its validity ends.
    unsigned lost_margin_percent = 10;
    // By how much another server's clock may be ahead: replicas store absolute expiry times.
    milliseconds clock_skew{0};
    // With this many renewals in flight at a node, others are put off for a while.
    std::size_t most_renewals = 1000;
    unsigned max_depth = 100'000;
};

class hold;

// Told in the serial section, once per acquire() or upgrade(); then the engine has forgotten it.
class acquire_completion {
public:
    virtual void acquired(hold& held) = 0;
    virtual void refused(const refusal& why) = 0;

    hold* pending_hold = nullptr;  // the engine's own: what is asked for, while it is

protected:
    ~acquire_completion() = default;
};

// Told once per release(), renew() or downgrade().
class hold_completion {
public:
    // Before answered(), where the server told: who hold the lock now, and who wait.
    virtual void left_behind(std::size_t /*holders*/, std::size_t /*waiters*/) {}
    // No refusal: done.
    virtual void answered(const std::optional<refusal>& why_not) = 0;

protected:
    ~hold_completion() = default;
};

// Told about a hold while it exists, in the serial section.
class hold_listener {
public:
    virtual void on_validity(instant until) = 0;
    // An upgrade has its own.
    virtual void on_token(fencing_token /*token*/) {}
    virtual void on_lost(errc why) = 0;
    // --- of a hold that is kept
    // Somebody else waits for the lock, as some node told. May come again.
    virtual void on_wanted() {}
    // Local grants may use the numbers after the hold's token up to this one.
    virtual void on_ceiling(fencing_token /*last*/) {}
    // When the newest proof from the present links of a majority was sent. instant{}: there is none since a link came
    // up, or the lock's server or owner changed; a renewal is on its way.
    virtual void on_proof(instant /*at*/) {}
    // Whether the loss of the hold is worth a line in the log.
    virtual bool is_in_use() { return true; }
    // Released: the reference to the hold is void.
    virtual void on_gone() = 0;

protected:
    ~hold_listener() = default;
};

}  // namespace holdfast::engine
