#include "engine/quorum/hold_store.hpp"

#include "base/assert.hpp"

namespace holdfast::engine {

hold_store::~hold_store() {
    free_forgotten();
    holds_.clear_and_dispose(std::default_delete<hold>());
}

hold& hold_store::make(hold_terms terms) {
    const std::uint64_t counter = ++last_counter_ + (terms.options.note ? wire::first_noted : 0);
    auto made = std::make_unique<hold>(hold_id(counter, random_), std::move(terms), nodes_);
    holds_.push_back(*made);
    return *made.release();
}

pending_work& hold_store::pending(hold& h) {
    if (!h.pending) {
        h.pending = spare_pending_.take();
        h.pending->whole = &h;
    }
    return *h.pending;
}

acquire_completion* hold_store::end_acquisition(hold& h) noexcept {
    if (!h.pending) return nullptr;
    acquisition& ended = h.pending->asked;
    acquire_completion* const request = std::exchange(ended.request, nullptr);
    if (request != nullptr) request->pending_hold = nullptr;
    ended.reach_by = ended.gather_until = never;
    return request;
}

void hold_store::drop_pending(hold& h) noexcept {
    if (!h.pending) return;
    timers_.cancel(*h.pending);
    h.pending->clear();
    spare_pending_.give_back(std::move(h.pending));
}

void hold_store::set_timer(hold& h) {
    if (!h.pending) return;
    const pending_work& work = *h.pending;
    const bool several = nodes_ > 1;
    if (!several && !work.is_waited_for()) return drop_pending(h);
    instant due = h.is_asked_for() && (several || h.held_back) ? work.asked.limit.deadline : never;
    due = std::min({due, work.asked.reach_by, work.asked.gather_until, work.heal_at});
    for (const answer_count& each : work.answers) due = std::min(due, each.answer_by);
    due == never ? timers_.cancel(*h.pending) : timers_.set(*h.pending, due);
}

hold* hold_store::take_due(instant now) {
    timed* const due = timers_.take_due(now);
    return due == nullptr ? nullptr : static_cast<pending_work&>(*due).whole;
}

void hold_store::forget_if_gone(hold& h) {
    if (h.phase != hold_phase::leaving) return;
    if (!std::ranges::all_of(h.nodes(), [](const node_hold& n) { return n.is_gone(); })) return;
    // The last answer is a node event that has not been counted yet.
    if (h.pending && h.pending->is_waited_for()) return;
    drop_pending(h);
    holds_.erase(holds_.iterator_to(h));
    h.phase = hold_phase::forgotten;
    forgotten_.push_back(&h);
}

void hold_store::free_forgotten() {
    std::ranges::for_each(forgotten_, std::default_delete<hold>());
    forgotten_.clear();
}

}  // namespace holdfast::engine
