// Asking for replicas before a grant, a renewal or a greater token counts.
//
// A replica that is promoted knows what it has acknowledged. A holder that must survive a failover believes in a grant
// only when enough replicas have it, and in a renewal, too: another holder would go by the older expiry. The proof is
// as old as it was: validity counts from before the request that proved the hold, however long the replicas took.
//
// A grant that too few replicas have is undone. A renewal that too few have is not counted, and tried again.
#pragma once

#include "engine/node/node_core.hpp"

#include <optional>

namespace holdfast::engine {

// How a confirmation ended.
struct confirmation {
    std::optional<failure> why_not;
    bool is_unknown = false;  // how many have it: the link or the server was another, in trouble, or out of reach
};

class confirming {
public:
    explicit confirming(node_core& core) : core_(core) {}

    static bool is_wanted(const node_hold& n) noexcept;
    void ask(node_hold& n, call* node_requests::*slot, call::purpose what, const proof& shown);
    confirmation judge(const node_hold& n, const redis::reply_view& reply) const;
    static confirmation judge(const failure& why);
    refusal too_few() const;

private:
    node_core& core_;
};

}  // namespace holdfast::engine
