// Keeping a hold, holding less, and releasing it: what the nodes' results add up to.
//
// Invariants:
//  (1) A hold's validity is that of its majority-th best node hold. It is lost when fewer than a majority are left.
//      Lost is for ever.
//  (2) What ends a hold ends all its node holds, those included that never answered.
#pragma once

#include "engine/effects.hpp"
#include "engine/quorum/hold_store.hpp"
#include "engine/quorum/node_set.hpp"

namespace holdfast::engine {

class holding {
public:
    holding(const engine_settings& settings, hold_store& holds, const node_set& nodes, agenda& todo)
        : settings_(settings), holds_(holds), nodes_(nodes), todo_(todo) {}

    // --- requests
    void renew(hold& h, hold_completion& request, instant now);
    // Of a hold that is not renewed by itself, and was re-entered.
    void renew_nodes(hold& h, instant now);
    void release(hold& h, access level, hold_completion* request, instant answer_by, instant now);
    // After a sleep the caller may be here before the timer: what ran out meanwhile is lost.
    void lose_if_ran_out(hold& h, instant now) {
        if (h.phase == hold_phase::held && h.ran_out(now)) lose(h, errc::lost, now);
    }
    void abandon(hold& h, instant now);

    // --- results of nodes
    // A majority has granted it; its validity is told from now on.
    void begin(hold& h, instant now);
    // One node hold more than needed: of a slow node, or of one that has come back.
    void one_more(hold& h);
    // A node lost its hold, could not renew it, or refused a new one.
    void on_node_hold_lost(node_hold& n, const refusal& told, errc why, instant now);
    void on_renewed(node_hold& n, const node_event& said, instant now);
    void on_changed(node_hold& n, const node_event& said);
    void on_released(node_hold& n, const node_event& said);
    void on_gone(node_hold& n);
    void on_recalled(node_hold& n, instant now);
    void on_wanted(node_hold& n);
    void on_timer(hold& h, instant now);

    void update_validity(hold& h);

private:
    void update_kept(hold& h);
    void one_less(hold& h, errc why, instant now);
    void tell_support(hold& h, support_now what);
    void lose(hold& h, errc why, instant now);
    void heal(hold& h, instant now);
    void release_level(hold& h, access level, hold_completion* request, instant answer_by, instant now);
    void make_less(hold& h, shape rest, instant now);

    // --- answers of many nodes that become one for the caller: to a release, a renewal or a downgrade
    // From the nodes that back the hold; the others are not asked. No request: nobody waits.
    void expect(hold& h, answer_to what, hold_completion* request, instant answer_by);
    // Only the first answer of a node counts.
    void count(node_hold& n, answer_to what, const node_event& said);
    void count_refused(node_hold& n, answer_to what, const refusal& why);
    void conclude(hold& h, answer_to what);
    void answer(hold& h, answer_to what, const refusal* why_not);
    // Ends it for a reason of our own.
    void refuse(hold& h, answer_to what, errc code, std::string_view detail);
    void refuse_late(hold& h, answer_to what, instant now, errc code, std::string_view detail);
    void refuse_now(hold_completion* request, errc code, std::string detail = {});

    const engine_settings& settings_;
    hold_store& holds_;
    const node_set& nodes_;
    agenda& todo_;
};

}  // namespace holdfast::engine
