// The meaning of a refusal by a member of a Cluster.
//
// With all kinds but the last no part of the command has run, so it may be sent again. A script on a moving slot may
// also be stopped half way, when it accesses a key that it has deleted itself. Nothing of it is rolled back then.
#pragma once

#include "redis/slots/hash_slot.hpp"
#include "redis/url/server_url.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::redis {

struct redirect {
    enum class kind : std::uint8_t {
        moved,         // `to` owns the slot
        ask,           // send it to `to` once, with ASKING: the slot is moving there, and the keys are there already
        try_again,     // the slot is moving, and neither member has all keys
        down,          // no member serves the slot
        spoiled_link,  // the member is no primary any more, or needs a new AUTH
        half_run,      // stopped after it may have written
    };
    kind what;
    hash_slot slot{};     // of moved and ask
    server_address to{};  // of moved and ask
};

// None: the error does not concern the Cluster, and goes to the owner of the command. `asked`: the member that refused.
// Its host replaces an empty one.
std::optional<redirect> read_redirect(std::string_view error_text, const server_address& asked);

}  // namespace holdfast::redis
