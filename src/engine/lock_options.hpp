// What a lock is like: every choice that is made once for a lock object and holds for all its acquisitions.
//
// One struct, copied as a whole from the lock object to the acquisition and to the hold: a new option needs a field
// here and in the public options, and nothing in between. An acquisition with a lease of its own changes `lease` in its
// copy. A client may have a hundred thousand holds, so the fields are as small as their ranges allow.
#pragma once

#include "redis/session/command.hpp"
#include "wire/requests.hpp"

#include <chrono>
#include <cstdint>

namespace holdfast::engine {

enum class renewal : std::uint8_t { automatic, none };
enum class upgrades : std::uint8_t { allowed, refused };

struct lock_options {
    std::chrono::milliseconds lease{30000};
    // How often a request whose answer was lost with its link is sent again. Acquiring and releasing count separately.
    unsigned max_repeats = static_cast<unsigned>(-1);
    // Of a lock whose key other programs use, too: after this time they get a turn; 0: never.
    std::uint16_t yield_after_ms = 0;
    // Of the first stripe of a striped lock: the number of stripes. Their keys follow its own. An owner that reads one
    // of them does not wait to write: the holders that it would wait for may wait for it.
    std::uint16_t stripes = 0;
    std::uint16_t replica_timeout_ms = 0;
    std::uint8_t replicas = 0;  // that must acknowledge a grant or a renewal before it counts
    wire::lock_kind kind = wire::lock_kind::mutex;
    wire::preference prefer = wire::preference::arrival;
    upgrades upgrading = upgrades::allowed;
    renewal renewing = renewal::automatic;

    redis::acknowledgement acknowledged_by() const noexcept {
        return {replicas, std::chrono::milliseconds(replica_timeout_ms)};
    }

    friend bool operator==(const lock_options&, const lock_options&) = default;
};

}  // namespace holdfast::engine
