// Ends a holder's grant by the will of an operator.
//
// recall() asks the holder to stop, by a push on its wake-up channel: its lost() fires, and it releases the lock when
// it has stopped. So the next holder does not begin before the previous one has ended.
//
// revoke() ends exactly the grant that was seen, by id and token, with the release script that the holder itself would
// use, so the script serves the queue. Then another push tells the holder, so that its lost() fires now and not at its
// next renewal. See wire/push.hpp.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"

#include <holdfast/client.hpp>

namespace holdfast::cli {

enum class revocation {
    done,
    too_late,    // the grant had ended already
    impossible,  // another program's hold of a kind where only that program can end it
};

// False: nobody listens, or the push could not be sent.
bool recall(const client& server, const lock_state& lock, const lock_holder& holder);

revocation revoke(const client& server, const lock_state& lock, const lock_holder& holder);

}  // namespace holdfast::cli
