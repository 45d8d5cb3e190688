// Validity and renewal of a node hold, and telling when it is lost.
//
// Invariants:
//  (1) Validity counts from before the request that proved the hold was written, never from its answer, less a drift of
//      lease/100 + 2 ms and the clocks' skew.
//  (2) A renewal never revives: what ran out by our own clock is lost, whatever the node answers.
//
// While a Cluster moves the lock's slot, a mutex is renewed as always: that needs one key. A read-write lock is renewed
// with those of its keys that exist whenever it is held. The layer below repeats that request for the moments in which
// even these keys are on two members. If something is unclear then, the full renewal waits for the end of the move.
#pragma once

#include "engine/node/confirming.hpp"

#include <optional>

namespace holdfast::engine {

class renewing {
public:
    renewing(node_core& core, confirming& confirms) : core_(core), confirms_(confirms) {}

    // The node has proved the hold: its validity and its next renewal count from then.
    void extend_validity(node_hold& n, instant proved_at);
    // Another program has cut the expiry of the lock's hash.
    static void note_foreign_ttl(node_hold& n, std::optional<milliseconds> cut_to);

    // Makes the lease full again now.
    void renew(node_hold& n, instant now);
    // From now on nobody renews it, and its lease ends it.
    void stop(node_hold& n, instant now);
    void on_timer(node_hold& n, instant now);

    // What the node has of the hold, if the answer proves that it is still held. Call found() after looking at it.
    std::optional<wire::hold_answer> on_reply(node_hold& n, const call& asked, const redis::reply_view& reply,
                                              instant now);
    void found(node_hold& n, const call& asked, const wire::hold_answer& answer, instant now);
    void on_failure(node_hold& n, const failure& why, instant now);
    void on_confirmation(node_hold& n, const call& asked, const confirmation& said, instant now);

private:
    std::chrono::nanoseconds pace(const node_hold& n) const;
    void send(node_hold& n, instant now, call::purpose how_asked = call::purpose::renew);
    void send_when_due(node_hold& n, instant now);
    void done(node_hold& n, instant now);

    node_core& core_;
    confirming& confirms_;
};

}  // namespace holdfast::engine
