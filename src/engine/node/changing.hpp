// Holding less: a downgrade, and taking back an upgrade that nobody waits for any more.
//
// The holder believes in less from the moment it asks; the node is told until it has understood. A change names the
// token of the grant that it makes less, so that a copy that runs late cannot hurt a later grant. Taking an upgrade
// back only leaves the queue, and learns what was granted meanwhile: that is then made less by its token.
#pragma once

#include "engine/node/renewing.hpp"

namespace holdfast::engine {

class changing {
public:
    changing(node_core& core, confirming& confirms, renewing& renews)
        : core_(core), confirms_(confirms), renews_(renews) {}

    // From now on the node should have this of it at most.
    void make_less(node_hold& n, shape at_most, instant now);
    void cancel_upgrade(node_hold& n, instant now);
    // The node has said what it has of this hold. An upgrade that nobody asked for (an old copy ran late) is given
    // back; one that is believed in and is not there is lost.
    void notice(node_hold& n, const wire::hold_answer& held, instant now);

    void on_reply(node_hold& n, const call& asked, const redis::reply_view& reply, instant now);
    void on_failure(node_hold& n, const failure& why, instant now);
    void on_timer(node_hold& n, instant now);

private:
    // Does nothing while a change is pending.
    void begin(node_hold& n, instant now);
    void send(node_hold& n, instant now);
    void on_cancel_reply(node_hold& n, const redis::reply_view& reply, instant now);
    void done(node_hold& n, std::optional<wire::hold_answer> answer, instant now);
    // For a reason that will not pass: the lease ends what the node still has.
    void give_up(node_hold& n, refusal why, instant now);

    node_core& core_;
    confirming& confirms_;
    renewing& renews_;
};

}  // namespace holdfast::engine
