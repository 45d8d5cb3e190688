// Answers of many nodes that become one for the caller: to a release, a renewal or a downgrade.
#pragma once

#include "engine/effects.hpp"
#include "engine/quorum/hold_store.hpp"
#include "engine/quorum/node_set.hpp"

#include <string_view>

namespace holdfast::engine {

class answers {
public:
    answers(hold_store& holds, const node_set& nodes, agenda& todo) : holds_(holds), nodes_(nodes), todo_(todo) {}

    // From those nodes that vote for the hold; what others say is not asked for. No request: nobody waits.
    void expect(hold& h, answer_to what, hold_completion* request, instant answer_by);
    // Only the first answer of a node counts.
    void count(node_hold& n, answer_to what, const node_event& said);
    void count_refused(node_hold& n, answer_to what, const refusal& why);
    // Ends it for a reason of our own.
    void refuse(hold& h, answer_to what, errc code, std::string_view detail);
    void refuse_late(hold& h, answer_to what, instant now, errc code, std::string_view detail);

private:
    void answer(hold& h, answer_to what, const refusal* why_not);
    void conclude(hold& h, answer_to what);

    hold_store& holds_;
    const node_set& nodes_;
    agenda& todo_;
};

}  // namespace holdfast::engine
