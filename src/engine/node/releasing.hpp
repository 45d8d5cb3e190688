// Ending a node hold: by its holder, or because nobody wants it any more.
//
// Invariant: an id that nobody asks for any more is undone, and the undo is sent after the last copy of what it undoes.
//
// While a Cluster moves the lock's slot, the keys of the queue may be missing or elsewhere, and a release does not run;
// the lock itself is one key, which is on one member or the other. So a mutex is then freed alone, and the caller need
// not wait; the full release waits until the slot has moved, and serves the queue.
#pragma once

#include "engine/node/node_core.hpp"

namespace holdfast::engine {

class releasing {
public:
    explicit releasing(node_core& core) : core_(core) {}

    // Ends all of it, if there is any.
    void release(node_hold& n, instant now);
    // The same where it is known what the node may have.
    void leave(node_hold& n, instant now);
    // A grant to an id that nobody asks for any more: an old copy of its request ran after it was undone.
    void give_back(node_hold& n, fencing_token token, instant now);

    void on_reply(node_hold& n, const call& asked, const redis::reply_view& reply, instant now);
    void on_failure(node_hold& n, const call& asked, const failure& why, instant now);
    void on_timer(node_hold& n, instant now);

private:
    void send(node_hold& n, instant now);
    bool can_go_alone(const node_hold& n) const noexcept;
    void send_alone(node_hold& n, instant now);
    void on_alone_reply(node_hold& n, const redis::reply_view& reply, instant now);
    void on_error(node_hold& n, const failure& why, instant now);
    void on_answer(node_hold& n, const wire::hold_answer& answer, instant now);
    void end(node_hold& n, const node_event& told, instant now);

    node_core& core_;
};

}  // namespace holdfast::engine
