// Takes a lock from one who holds it, by the operator's will.
//
// First the holder is asked to stop, by `recall <hold id> <token>` on its wake-up channel: its lost() fires, and when
// it has stopped it releases the lock itself. So the next holder does not begin before the former one has ended.
//
// What the holder does not give back is taken: revoke() ends exactly the grant that was seen, by id and token, with
// the release script that the holder itself would have used, so the next in line is served. Then the holder is told,
// by `revoked <hold id> <token>`, so that its lost() fires now and not at its next renewal. A holder that does not
// listen learns it then.
#pragma once

#include "cli/inspect/lock_state.hpp"

#include <holdfast/client.hpp>

namespace holdfast::cli {

enum class revocation {
    done,
    too_late,    // that grant had ended already
    impossible,  // another program's part in a read-write lock: only it knows how often it has entered
};

// Asks the holder to stop. False: nobody listens, or nobody could be told.
bool recall(const client& server, const lock_state& lock, const lock_holder& holder);

revocation revoke(const client& server, const lock_state& lock, const lock_holder& holder);

}  // namespace holdfast::cli
