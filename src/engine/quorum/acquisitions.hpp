// Acquiring and upgrading: all nodes are asked at once, and the node holds are counted.
//
// Invariants:
//  (1) A caller acquires when a majority holds, has one token for it, and is valid.
//  (2) Every acquisition ends: acquired, refused, or at its deadline.
//  (3) What is given up is undone at all nodes, those included that never answered.
//
// Only several nodes need more: one ticket for all queues, one token, and an end of split majorities. A client that
// has some node holds and no majority gives them up for the first waiter, and keeps its position. The waiter with the
// smallest ticket acquires every node hold that is given up and never loses one: it has its majority as soon as the
// others have given way once.
#pragma once

#include "engine/quorum/holding.hpp"
#include "engine/quorum/pacing.hpp"

namespace holdfast::engine {

class acquisitions {
public:
    acquisitions(const engine_settings& settings, hold_store& holds, const node_set& nodes, holding& held,
                 common_clock& clock, agenda& todo)
        : settings_(settings),
          holds_(holds),
          nodes_(nodes),
          held_(held),
          clock_(clock),
          todo_(todo),
          pacing_(holds, nodes) {}

    // --- requests
    void acquire(hold& h, acquire_completion& request, patience limit, instant now);
    void upgrade(hold& h, acquire_completion& request, patience limit, instant now);
    // It may wait until then, if that is later.
    void extend(hold& h, instant deadline, instant now);
    // Ends an acquisition, and undoes what there is of it; what was held before stays held.
    void fail(hold& h, refusal why, instant now);

    // --- results of nodes
    // True: the caller has it.
    bool on_granted(node_hold& n, how granted_how, instant now);
    bool on_raised(node_hold& n, instant now);
    void on_queued(node_hold& n, instant now);
    void on_refused(node_hold& n, const refusal& why, instant now);
    void on_lost(node_hold& n, instant now);
    // One of its node holds changed. True: the caller holds the lock.
    bool recount(hold& h, instant now);
    // A node has answered.
    void answered(hold& h) { pacing_.answered(h); }
    void on_clock_read(instant now);
    void on_owners_changed();
    void on_links_changed(instant now);
    void on_timer(hold& h, instant now);

private:
    void begin(hold& h, acquire_completion& request, patience limit, instant now);
    void ask_all(hold& h, instant now);
    bool count(hold& h, how granted_how, instant now);
    void complete(hold& h, how granted_how, instant now);
    void leave_queues(hold& h, instant now);
    bool agree_on_token(hold& h, const node_holds& mine, instant now);
    void gather(hold& h, instant now);
    void check_gathering(hold& h, instant now);
    void withdraw(hold& h, instant now);
    void check_hope(hold& h, instant now);
    void undo_nodes(hold& h, instant now);
    void undo_upgrade(hold& h, instant now);
    refusal too_late(const hold& h, instant now) const;
    refusal out_of_reach(const hold& h, std::size_t heard_from) const;
    void check_reach(hold& h, instant now);
    void want_links(const hold& h);
    void ask_those_who_refused(hold& h, instant now);
    void move_tickets(instant now);
    void give_ticket(hold& h, std::string ticket, instant now);

    const engine_settings& settings_;
    hold_store& holds_;
    const node_set& nodes_;
    holding& held_;
    common_clock& clock_;
    agenda& todo_;
    pacing pacing_;
};

}  // namespace holdfast::engine
