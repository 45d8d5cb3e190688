// Keeping a hold, holding less, and releasing it: what the nodes' results add up to.
//
// Invariants:
//  (1) A hold's validity is that of its majority-th best node hold. It is lost when fewer than a majority are left.
//  Lost
//      is for ever.
//  (2) What ends a hold ends all its node holds, those included that never answered.
#pragma once

#include "engine/quorum/answers.hpp"

namespace holdfast::engine {

struct engine_settings {
    milliseconds request_timeout{2000};
    // Whoever waits without a limit gives nodes that were never reached this long.
    milliseconds first_connect{10'000};
    milliseconds fence_retention{3600 * 1000};
    // See node_settings.
    unsigned lost_margin_percent = 10;
    milliseconds clock_skew{0};
    std::size_t most_renewals = 1000;
    unsigned max_depth = 100'000;
};

class holding {
public:
    holding(const engine_settings& settings, hold_store& holds, const node_set& nodes, agenda& todo)
        : settings_(settings), holds_(holds), nodes_(nodes), todo_(todo), answers_(holds, nodes, todo) {}

    // --- requests
    void renew(hold& h, hold_completion& request, instant now);
    // Of a hold that is not renewed by itself, and was re-entered.
    void renew_nodes(hold& h, instant now);
    void release(hold& h, access level, hold_completion* request, instant answer_by, instant now);
    // After a sleep the caller may be here before the timer: what ran out meanwhile is lost.
    void lose_if_ran_out(hold& h, instant now);
    void abandon(hold& h, instant now);

    // --- results of nodes
    // A majority has granted it; its validity is told from now on.
    void begin(hold& h, instant now);
    // One vote more than needed: a slow node's, or one that has come back.
    void one_more(hold& h);
    void on_lost(node_hold& n, errc why, instant now);
    // A node could not keep its vote, or was asked for one in vain.
    void on_refused(node_hold& n, const refusal& why, instant now);
    void on_extended(node_hold& n);
    void on_renewed(node_hold& n, const node_event& said, instant now);
    void on_changed(node_hold& n, const node_event& said);
    void on_released(node_hold& n, const node_event& said);
    void on_gone(node_hold& n);
    void on_recalled(node_hold& n, instant now);
    void on_timer(hold& h, instant now);

    void update_validity(hold& h);

private:
    void one_less(hold& h, errc why, instant now);
    void tell_votes(hold& h, votes_now what);
    void lose(hold& h, errc why, instant now);
    void heal(hold& h, instant now);
    void release_level(hold& h, access level, hold_completion* request, instant answer_by, instant now);
    void make_less(hold& h, shape rest, instant now);
    void refuse_now(hold_completion* request, errc code, std::string detail = {});

    const engine_settings& settings_;
    hold_store& holds_;
    const node_set& nodes_;
    agenda& todo_;
    answers answers_;
};

}  // namespace holdfast::engine
