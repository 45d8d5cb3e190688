// Asking a node for a lock, or for an upgrade, and waiting in its queue.
//
// Invariants:
//  (1) A pushed grant is proved by the last poll that was answered "queued": its lease began after that.
//  (2) Whatever was written on a link that broke is repeated on the next one, or undone there.
//  (3) A client never believes a grant it did not ask for; it gives that grant back.
#pragma once

#include "engine/node/changing.hpp"
#include "engine/node/releasing.hpp"

namespace holdfast::engine {

class acquiring {
public:
    acquiring(node_core& core, confirming& confirms, renewing& renews, changing& changes, releasing& releases)
        : core_(core), confirms_(confirms), renews_(renews), changes_(changes), releases_(releases) {}

    void ask(node_hold& n, patience limit, instant now);
    // Has a node hold that reads write as well; it goes on reading, whatever comes of it.
    void upgrade(node_hold& n, patience limit, instant now);
    // Gives a vote up for the first waiter, and keeps its own position; it counts no more from now on.
    void yield(node_hold& n, instant now);
    // Ends a pending acquisition, and gives back what it may have got. The caller knows, and is not told.
    void give_up(node_hold& n, instant now);
    void poll(node_hold& n, instant now);
    // An upgrade that had to wait for a change or a raise is asked for when that is over.
    void start_deferred(node_hold& n, instant now);

    void on_reply(node_hold& n, const call& asked, const redis::reply_view& reply, instant now);
    void on_failure(node_hold& n, const failure& why, instant now);
    void on_confirmation(node_hold& n, const call& asked, const confirmation& said, instant now);
    void on_timer(node_hold& n, instant now);
    void on_link_up(node_hold& n, instant now);
    void on_push(node_hold& n, fencing_token token, instant now);
    // A renewal was answered. If it shows the upgrade that is waited for, that is how the client hears of it.
    void on_renewed(node_hold& n, const wire::hold_answer& answer, instant proved_at, instant now);
    // An operator has ended a grant whose replicas are being asked for: ask where it stands.
    void on_revoked(node_hold& n, instant now);
    void on_subscription_refused(node_hold& n, const failure& why, instant now);

    // It waits for the node's answer, and nobody is told before.
    static bool is_confirming(const node_hold& n, fencing_token token) noexcept;

private:
    void begin(node_hold& n, patience limit, instant now, fencing_token gives_way = 0);
    void send(node_hold& n, instant now);
    void on_answer(node_hold& n, const call& asked, const wire::acquire_answer& answer, instant now);
    void on_queued(node_hold& n, const call& asked, const wire::acquire_answer& answer, instant now);
    milliseconds next_poll(node_hold& n, const wire::acquire_answer& answer, bool same_holder);
    void granted(node_hold& n, const proof& shown, instant now);
    void believe(node_hold& n, const proof& shown, instant now);
    void upgraded(node_hold& n, const proof& shown, instant now);
    void proved_again(node_hold& n, const proof& shown, instant now);
    void ask_after_late_grant(node_hold& n, instant now);
    void confirm_grant(node_hold& n, const proof& shown, instant now);
    void grant_not_known(node_hold& n, const failure& why, instant now);
    void refuse(node_hold& n, refusal why, instant now);
    void refuse_or_stay(node_hold& n, refusal why, instant now);
    refusal recovering(const node_hold& n, instant now) const;
    refusal too_late(const node_hold& n, instant now) const;

    node_core& core_;
    confirming& confirms_;
    renewing& renews_;
    changing& changes_;
    releasing& releases_;
};

}  // namespace holdfast::engine
