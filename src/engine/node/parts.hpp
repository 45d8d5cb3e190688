// The steps of a node agent, by what they do with a node hold. Each namespace uses only those before it.
#pragma once

#include "engine/node/node_agent.hpp"

namespace holdfast::engine {

using purpose = call::purpose;
using wire::hold_answer;

// How a confirmation ended.
struct confirmation {
    std::optional<failure> why_not;
    bool is_unknown = false;  // how many have it: the link or the server was another, in trouble, or out of reach
};

// Holds that may be asked back.
//
// A node knows such a hold by a marked id if this client hears there: the id itself says that others may ask for it.
// Each node decides once, before it is asked first. Whatever the node tells of a marked hold beside the hold itself is
// noted here: the numbers that local grants may use, whether others wait, and when the present link proved it last.
namespace keeping {

// Before the first request.
void mark(node_agent& agent, node_hold& n);
// That many others wait, as the node told.
void note_waiters(node_agent& agent, node_hold& n, std::size_t waiters);
// The node has this ceiling. It counts when replicas that must have it have acknowledged it, see proved().
void note_ceiling(node_hold& n, fencing_token ceiling) noexcept;
// The node holds it, by an answer that counts.
void proved(node_agent& agent, node_hold& n, const proof& shown) noexcept;
// For an operator's message about a hold: `token` is the last one that the node granted, or 0.
bool is_grant(const node_hold& n, fencing_token token) noexcept;
// A node that is asked again by a marked id tells its last number, not its token.
bool is_same_grant(const node_hold& n, const proof& shown) noexcept;
// What was pushed before is lost, and the server may be another: a renewal has to show.
void on_link_up(node_agent& agent, node_hold& n, instant now);
bool lacks_proof(const node_hold& n) noexcept;

// Of requests that must name it.
inline fencing_token ceiling_of(const node_hold& n) noexcept {
    return n.is_marked() ? n.whole->kept->nodes[n.node].ceiling : 0;
}

}  // namespace keeping

// Asking for replicas before a grant, a renewal or a greater token counts.
//
// A replica that is promoted knows what it has acknowledged. A holder that must survive a failover believes in a grant
// only when enough replicas have it, and in a renewal, too: another holder would go by the older expiry. The proof is
// as old as it was: validity counts from before the request that proved the hold, however long the replicas took.
//
// A grant that too few replicas have is undone. A renewal that too few have is not counted, and tried again.
namespace confirming {

inline bool is_wanted(const node_hold& n) noexcept {
    return n.whole->options().replicas > 0;
}
void ask(node_agent& agent, node_hold& n, call* node_requests::*slot, purpose what, const proof& shown);
confirmation conclude(node_agent& agent, const node_hold& n, const redis::reply_view& reply);
confirmation conclude(const failure& why);
refusal too_few(node_agent& agent);

}  // namespace confirming

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
namespace renewing {

// The node has proved the hold: its validity and its next renewal count from then.
void extend_validity(node_agent& agent, node_hold& n, instant proved_at);
// Another program has cut the expiry of the lock's hash.
void note_foreign_ttl(node_hold& n, std::optional<milliseconds> cut_to);

// Makes the lease full again now.
void renew(node_agent& agent, node_hold& n, instant now);
// The present link must prove it: what is in flight may be answered by the lock's former server. Many are spread.
void prove_anew(node_agent& agent, node_hold& n, instant now);
// From now on nobody renews it, and its lease ends it.
void stop(node_agent& agent, node_hold& n, instant now);
void on_timer(node_agent& agent, node_hold& n, instant now);

// What the node has of the hold, if the answer proves that it is still held. Call found() after looking at it.
std::optional<hold_answer> on_reply(node_agent& agent, node_hold& n, const call& asked, const redis::reply_view& reply,
                                    instant now);
void found(node_agent& agent, node_hold& n, const call& asked, const hold_answer& answer, instant now);
void on_failure(node_agent& agent, node_hold& n, const failure& why, instant now);
void on_confirmation(node_agent& agent, node_hold& n, const call& asked, const confirmation& said, instant now);

}  // namespace renewing

// Holding less: a downgrade, and taking back an upgrade that nobody waits for any more.
//
// The holder believes in less from the moment it asks; the node is told until it has understood. A change names the
// token of the grant that it makes less, so that a copy that runs late cannot hurt a later grant. Taking an upgrade
// back only leaves the queue, and learns what was granted meanwhile: that is then made less by its token.
namespace changing {

// From now on the node should have this of it at most.
void make_less(node_agent& agent, node_hold& n, shape at_most, instant now);
void cancel_upgrade(node_agent& agent, node_hold& n, instant now);
// The node has said what it has of this hold. An upgrade that nobody asked for (an old copy ran late) is given
// back; one that is believed in and is not there is lost.
void notice(node_agent& agent, node_hold& n, const hold_answer& held, instant now);

void on_reply(node_agent& agent, node_hold& n, const call& asked, const redis::reply_view& reply, instant now);
void on_failure(node_agent& agent, node_hold& n, const failure& why, instant now);
void on_timer(node_agent& agent, node_hold& n, instant now);

}  // namespace changing

// Ending a node hold: by its holder, or because nobody wants it any more.
//
// Invariant: an id that nobody asks for any more is undone, and the undo is sent after the last copy of what it undoes.
//
// While a Cluster moves the lock's slot, the keys of the queue may be missing or elsewhere, and a release does not run;
// the lock itself is one key, which is on one member or the other. So a mutex is then freed alone, and the caller need
// not wait; the full release waits until the slot has moved, and serves the queue.
namespace releasing {

// Ends all of it, if there is any.
void release(node_agent& agent, node_hold& n, instant now);
// The same where it is known what the node may have.
void leave(node_agent& agent, node_hold& n, instant now);
// A grant to an id that nobody asks for any more: an old copy of its request ran after it was undone.
void give_back(node_agent& agent, node_hold& n, fencing_token token, instant now);

void on_reply(node_agent& agent, node_hold& n, const call& asked, const redis::reply_view& reply, instant now);
void on_failure(node_agent& agent, node_hold& n, const call& asked, const failure& why, instant now);
void on_timer(node_agent& agent, node_hold& n, instant now);

}  // namespace releasing

// Asking a node for a lock, or for an upgrade, and waiting in its queue.
//
// Where nobody can push to this client a waiter polls after 50 ms and then after twice as long each time: so a grant
// waits for its holder no longer than that one has waited. The longest interval is 250 ms for each waiter up to itself:
// many waiters cost few polls, and each is often enough there when its turn comes. Where messages come on a link of
// their own a waiter that gets one polls, and believes the answer.
//
// Invariants:
//  (1) A pushed grant is proved by the last poll that was answered "queued": its lease began after that.
//  (2) Whatever was written on a link that broke is repeated on the next one, or undone there.
//  (3) A client never believes a grant it did not ask for; it gives that grant back.
namespace acquiring {

void ask(node_agent& agent, node_hold& n, waiting wait, instant now);
// Has a node hold that reads write as well; it goes on reading, whatever comes of it.
void upgrade(node_agent& agent, node_hold& n, waiting wait, instant now);
// Gives a node hold up for the first waiter, and keeps its own position; it does not count from now on.
void yield(node_agent& agent, node_hold& n, instant now);
// Ends a pending acquisition, and releases what the node may have granted. The caller knows, and is not told.
void give_up(node_agent& agent, node_hold& n, instant now);
void poll(node_agent& agent, node_hold& n, instant now);
// An upgrade that had to wait for a change or a raise is asked for when that is over.
// Its deadline has become later.
void extend(node_agent& agent, node_hold& n, instant now);
void start_deferred(node_agent& agent, node_hold& n, instant now);

void on_reply(node_agent& agent, node_hold& n, const call& asked, const redis::reply_view& reply, instant now);
void on_failure(node_agent& agent, node_hold& n, const failure& why, instant now);
void on_confirmation(node_agent& agent, node_hold& n, const call& asked, const confirmation& said, instant now);
void on_timer(node_agent& agent, node_hold& n, instant now);
void on_link_up(node_agent& agent, node_hold& n, instant now);
void on_push(node_agent& agent, node_hold& n, const wire::push_reader::item& pushed, instant now);
// A waiter polls, also if a poll is in flight that may have run too early.
void on_hint(node_agent& agent, node_hold& n, instant now);
// A renewal was answered. If it shows the upgrade that is waited for, that is how the client hears of it.
void on_renewed(node_agent& agent, node_hold& n, const hold_answer& answer, instant proved_at, instant now);
// An operator has ended a grant whose replicas are being asked for: ask where it stands.
void on_revoked(node_agent& agent, node_hold& n, instant now);
void on_subscription_refused(node_agent& agent, node_hold& n, const failure& why, instant now);

// It waits for the node's answer, and nobody is told before.
bool is_confirming(const node_hold& n, fencing_token token) noexcept;

}  // namespace acquiring

// One token for all: a node hold gets the greater token that another node gave for the same hold.
//
// What a majority knows as the token of a hold, every later majority will exceed. Where all nodes took the proposed
// token that is so without a further request; otherwise the greatest is written to those that have less.
namespace raising {

void raise(node_agent& agent, node_hold& n, fencing_token to, instant now);

void on_reply(node_agent& agent, node_hold& n, const redis::reply_view& reply, instant now);
void on_failure(node_agent& agent, node_hold& n, const failure& why, instant now);
void on_confirmation(node_agent& agent, node_hold& n, const confirmation& said, instant now);
void on_timer(node_agent& agent, node_hold& n, instant now);

}  // namespace raising

}  // namespace holdfast::engine
