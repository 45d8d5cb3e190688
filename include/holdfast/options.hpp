// What can be chosen for a client, a lock and a single call. Every field has a default that is right for
// most.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

namespace holdfast {

using std::chrono::milliseconds;

/// How the name of a lock becomes a key in Redis.
enum class keys {
    tagged,  ///< `hf:{name}`: cannot collide with other programs' keys
    raw,     ///< the name itself, for locks shared with programs that use the plain SET NX PX form
};

/// For everything that goes through one client.
struct client_options {
    /// How long tokens are remembered after their last use; they keep growing across a server clock that is
    /// set back by up to this much.
    milliseconds fence_retention{std::chrono::hours(1)};
    /// `lost()` fires when this part of the lease is all that is left of a hold's validity.
    unsigned lost_margin_percent = 10;
};

/// For one mutex.
struct mutex_options {
    /// How long a hold lasts without renewal; from 10 ms to 24 h.
    milliseconds lease{std::chrono::seconds(30)};
    /// Renew in the background while held. Without it the hold ends with its lease.
    bool renew = true;
    holdfast::keys keys = keys::tagged;
    /// Stands before the tagged key.
    std::string prefix = "hf:";
};

/// For one acquisition.
struct acquire_options {
    /// Zero: the mutex's own.
    milliseconds lease{0};
    /// Stops the waiting; what was got too late is given back.
    std::stop_token stop = {};
};

}  // namespace holdfast
