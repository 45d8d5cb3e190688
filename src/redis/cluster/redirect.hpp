// What a member of a Cluster means by refusing a command.
//
// All but the last kind have in common that the command did not run, nor any part of it: it may be sent again, there or
// elsewhere. A script on a slot that is moving may also be stopped in its middle, when it touches a key again that it
// has itself made vanish; nothing of it is rolled back then.
#pragma once

#include "redis/cluster/hash_slot.hpp"
#include "redis/url/server_url.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::redis {

struct redirect {
    enum class kind : std::uint8_t {
        moved,         // the slot is `to`'s
        ask,           // this once at `to`, with ASKING: the slot is moving there and the keys are not here any more
        try_again,     // the slot is moving, and its keys are neither all here nor all there
        down,          // nobody serves the slot
        spoiled_link,  // the one who was asked is no primary any more, or has forgotten who we are
        half_run,      // stopped after it may have changed something
    };
    kind what;
    hash_slot slot{};     // of moved and ask
    server_address to{};  // of moved and ask
};

// Nothing: it is not about the Cluster, but for whoever asked. `asked`: who refused; its host stands for one that is
// left empty.
std::optional<redirect> read_redirect(std::string_view error_text, const server_address& asked);

}  // namespace holdfast::redis
