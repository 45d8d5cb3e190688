#include "engine/quorum/answers.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::engine {

void answers::expect(hold& h, answer_to what, hold_completion* request, instant answer_by) {
    if (h.pending) h.pending->about(what) = {};
    if (request == nullptr) return;
    answer_count& count = holds_.pending(h).about(what);
    count.request = request;
    count.answer_by = answer_by;
    for (node_hold& n : h.nodes()) {
        n.take_expected(what);
        if (what == answer_to::renewal ? !nodes_.is_backed_by(h, n) : !n.counts()) continue;
        n.expect(what);
        ++count.open;
    }
}

void answers::count(node_hold& n, answer_to what, const node_event& said) {
    if (said.why_not) return count_refused(n, what, *said.why_not);
    hold& h = *n.whole;
    if (!n.take_expected(what) || !h.is_waited_for(what)) return;
    answer_count& count = h.pending->about(what);
    --count.open;
    ++count.done;
    count.holders = std::max(count.holders, said.holders);
    count.waiters = std::max(count.waiters, said.waiters);
    conclude(h, what);
}

void answers::count_refused(node_hold& n, answer_to what, const refusal& why) {
    hold& h = *n.whole;
    if (!n.take_expected(what) || !h.is_waited_for(what)) return;
    answer_count& count = h.pending->about(what);
    --count.open;
    if (!count.why_not) count.why_not = why;
    conclude(h, what);
}

void answers::conclude(hold& h, answer_to what) {
    answer_count& count = h.pending->about(what);
    if (count.done >= nodes_.majority()) return answer(h, what, nullptr);
    if (count.done + count.open >= nodes_.majority()) return;
    answer(h, what, count.why_not ? todo_.keep(*count.why_not) : nullptr);
}

void answers::answer(hold& h, answer_to what, const refusal* why_not) {
    if (!h.is_waited_for(what)) return;
    answer_count& count = h.pending->about(what);
    count.answer_by = never;
    todo_.add(effects::answered{std::exchange(count.request, nullptr), why_not, count.holders, count.waiters});
}

// If nobody waits, no text is made.
void answers::refuse(hold& h, answer_to what, errc code, std::string_view detail) {
    if (!h.is_waited_for(what)) return;
    answer(h, what, todo_.keep(refusal{code, std::string(detail), {}, {}}));
}

void answers::refuse_late(hold& h, answer_to what, instant now, errc code, std::string_view detail) {
    if (h.pending && now >= h.pending->about(what).answer_by) refuse(h, what, code, detail);
}

}  // namespace holdfast::engine
