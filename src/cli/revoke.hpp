// Takes a lock from one who holds it, by the operator's will.
//
// It ends exactly the grant that was seen, by id and token, with the release script that the holder itself would
// have used: so the next in line is served. Then the holder is told, by `revoked <hold id> <token>` on its
// wake-up channel, so that its lost() fires now and not at its next renewal. A holder that does not listen
// learns it then.
#pragma once

#include "cli/lock_state.hpp"

#include <holdfast/client.hpp>

namespace holdfast::cli {

enum class revocation {
    done,
    too_late,    // that grant had ended already
    impossible,  // another program's part in a read-write lock: only it knows how often it has entered
};

revocation revoke(const client& server, const lock_state& lock, const lock_holder& holder);

}  // namespace holdfast::cli
