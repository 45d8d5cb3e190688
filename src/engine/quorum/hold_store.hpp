// All holds of a client, their timers, and the memory of what is pending about them.
//
// A hold that is over is taken out at once, but freed only when no effect or node event can refer to it any more.
#pragma once

#include "base/random_source.hpp"
#include "engine/hold.hpp"
#include "engine/spares.hpp"

namespace holdfast::engine {

class hold_store {
public:
    hold_store(std::size_t nodes, random_source& random) : nodes_(nodes), random_(random) {}
    ~hold_store();

    hold& make(hold_terms terms);
    boost::intrusive::list<hold>& all() noexcept { return holds_; }
    std::size_t size() const noexcept { return holds_.size(); }

    pending_work& pending(hold& h);
    // The caller that waits for it; null: none.
    static acquire_completion* end_acquisition(hold& h) noexcept;
    // To what is due first of all that is pending. Where there is one node, a hold that is simply held has nothing
    // pending, and needs no memory for it.
    void set_timer(hold& h);
    void set_timer(hold& h, instant due) { timers_.set(*h.pending, due); }
    hold* take_due(instant now);
    instant earliest() const noexcept { return timers_.earliest(); }

    // Takes the hold out if nothing of it is left at any node, and nobody waits for it.
    void forget_if_gone(hold& h);
    bool has_forgotten() const noexcept { return !forgotten_.empty(); }
    void free_forgotten();

private:
    void drop_pending(hold& h) noexcept;

    const std::size_t nodes_;
    random_source& random_;
    std::uint64_t last_counter_ = 0;
    timer_heap timers_;
    spares<pending_work> spare_pending_;
    boost::intrusive::list<hold> holds_;  // in the order they were asked for
    std::vector<hold*> forgotten_;
};

}  // namespace holdfast::engine
