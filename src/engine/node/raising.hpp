// One token for all: a node hold gets the greater token that another node gave for the same hold.
//
// What a majority knows as the token of a hold, every later majority will exceed. Where all nodes took the proposed
// token that is so without a further request; otherwise the greatest is written to those that have less.
#pragma once

#include "engine/node/confirming.hpp"
#include "engine/node/releasing.hpp"

namespace holdfast::engine {

class raising {
public:
    raising(node_core& core, confirming& confirms, releasing& releases)
        : core_(core), confirms_(confirms), releases_(releases) {}

    void raise(node_hold& n, fencing_token to, instant now);

    void on_reply(node_hold& n, const redis::reply_view& reply, instant now);
    void on_failure(node_hold& n, const failure& why, instant now);
    void on_confirmation(node_hold& n, const confirmation& said, instant now);
    void on_timer(node_hold& n, instant now);

private:
    void send(node_hold& n, instant now);
    void send_later(node_hold& n, instant now);
    void done(node_hold& n);

    node_core& core_;
    confirming& confirms_;
    releasing& releases_;
};

}  // namespace holdfast::engine
