// Ends the hold of somebody else: asks the holder to stop, then ends the grant of one that does not.
//
// recall() asks the holder to stop, by a push on its wake-up channel: its lost() fires, and it releases the lock when
// it has stopped. So the next holder does not begin before the previous one has ended.
//
// revoke() ends exactly the grant that was seen, by id and token, with the release script that the holder itself would
// use, so the script serves the queue. Then another push tells the holder, so that its lost() fires now and not at its
// next renewal. See wire/push.hpp.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

enum class revocation {
    done,
    too_late,    // the grant was already over
    impossible,  // another program's hold of a kind where only that program can end it
};

// What was seen, asked about, and is ended: the same list all the way. Of each server, because tokens and leases are
// its own.
using sightings = std::vector<std::optional<lock_state>>;

// With only that holder if `only` is not empty.
sightings look_at_each(server_set& servers, const lock_ref& where, const std::string& only);

// What became of one holder's grants, on all servers.
struct outcome {
    revocation what = revocation::too_late;
    std::size_t ended = 0;   // on so many servers
    std::size_t left = 0;    // on so many it may have it still
    std::string trouble;     // why
    bool gave_back = false;  // the holder released it, when it was asked to

    bool is_over(const server_set& servers) const {
        return (gave_back || what == revocation::done) && left < servers.majority();
    }
};

// For people: "stopped, and released it".
std::string describe(const outcome& one, const server_set& servers);

// Asks all these holders to stop, waits at most `grace` until they have, and ends what is left. The i-th outcome is
// that of the i-th holder of `lock`, which is what was seen, merged.
std::vector<outcome> end_holds(server_set& servers, const sightings& seen, const lock_state& lock, milliseconds grace);

}  // namespace holdfast::cli
