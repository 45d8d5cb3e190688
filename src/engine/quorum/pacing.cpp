#include "engine/quorum/pacing.hpp"

namespace holdfast::engine {

bool pacing::hold_back(hold& h) {
    const instant deadline = h.pending->asked.limit.deadline;
    if (paces_.empty() || deadline == never) return false;
    const auto found = paces_.find(h.terms().keys->lock());
    if (found == paces_.end()) return false;
    if (found->second.room() > 0) {
        count_as_unanswered(h, found->second);
        return false;
    }
    found->second.held_back.emplace(deadline, &h);
    h.held_back = true;
    holds_.set_timer(h);
    return true;
}

void pacing::count_as_unanswered(hold& h, pace& of_lock) {
    ++of_lock.unanswered;
    h.paced = true;
}

bool pacing::take_room(hold& h) {
    pace& of_lock = of(h);
    if (of_lock.room() == 0) return false;
    take_back(h, of_lock);
    count_as_unanswered(h, of_lock);
    return true;
}

void pacing::take_back(hold& h, pace& of_lock) {
    const auto [first, end] = of_lock.held_back.equal_range(h.pending->asked.limit.deadline);
    of_lock.held_back.erase(std::find_if(first, end, [&h](const auto& each) { return each.second == &h; }));
    h.held_back = false;
}

void pacing::stop_holding_back(hold& h) {
    if (!h.held_back) return;
    take_back(h, of(h));
    fill_room(h);
}

// By their timers.
void pacing::fill_room(const hold& h) {
    pace& of_lock = of(h);
    auto next = of_lock.held_back.rbegin();
    for (std::size_t room = of_lock.room(); room > 0 && next != of_lock.held_back.rend(); --room, ++next) {
        holds_.set_timer(*next->second, instant());
    }
    if (of_lock.is_over()) paces_.erase(h.terms().keys->lock());
}

void pacing::given_up(hold& h) {
    const auto unanswered = [](const node_hold& n) { return n.was_given_up_unanswered(); };
    if (nodes_.count(h, unanswered) <= minority()) return;
    pace& of_lock = paces_[h.terms().keys->lock()];
    if (!h.paced) count_as_unanswered(h, of_lock);
    of_lock.given_up();
}

void pacing::answered(hold& h) {
    if (!h.paced) return;
    if (nodes_.count(h, [](const node_hold& n) { return n.is_unanswered(); }) > minority()) return;
    h.paced = false;
    pace& of_lock = of(h);
    --of_lock.unanswered;
    if (h.phase != hold_phase::leaving) of_lock.answered_in_time();
    fill_room(h);
}

}  // namespace holdfast::engine
