#include "engine/pacing.hpp"

#include "engine/engine.hpp"

namespace holdfast::engine {

// What was sent for it and is not answered is more than a minority's.
bool engine::is_unanswered(const hold& h) const {
    return votes(h, [](const node_hold& b) { return b.is_unanswered(); }) > agents_.size() - majority();
}

pace& engine::pace_of(const hold& h) {
    return paces_.find(h.terms_.keys->lock())->second;
}

// True: not now. It is asked for when there is room, if it is wanted still.
bool engine::hold_back(hold& h) {
    const instant deadline = h.pending_->acquisition.limit.deadline;
    if (paces_.empty() || deadline == never) return false;
    const auto found = paces_.find(h.terms_.keys->lock());
    if (found == paces_.end()) return false;
    if (found->second.room() > 0) {
        count_as_unanswered(h, found->second);
        return false;
    }
    found->second.held_back.emplace(deadline, &h);
    h.held_back_ = true;
    set_timer(h);
    return true;
}

void engine::count_as_unanswered(hold& h, pace& of_lock) {
    ++of_lock.unanswered;
    h.paced_ = true;
}

void engine::ask_if_room(hold& h, instant now) {
    pace& of_lock = pace_of(h);
    if (of_lock.room() == 0) return;
    take_back(h, of_lock);
    count_as_unanswered(h, of_lock);
    ask_all(h, now);
}

void engine::take_back(hold& h, pace& of_lock) {
    auto [one, end] = of_lock.held_back.equal_range(h.pending_->acquisition.limit.deadline);
    of_lock.held_back.erase(std::find_if(one, end, [&h](const auto& each) { return each.second == &h; }));
    h.held_back_ = false;
}

void engine::stop_holding_back(hold& h) {
    if (!h.held_back_) return;
    take_back(h, pace_of(h));
    fill_room(h);
}

// By their timers: whoever makes room may be in the middle of something.
void engine::fill_room(const hold& h) {
    pace& of_lock = pace_of(h);
    auto next = of_lock.held_back.rbegin();
    for (std::size_t room = of_lock.room(); room > 0 && next != of_lock.held_back.rend(); --room, ++next) {
        timers_.set(*next->second->pending_, instant());
    }
    if (of_lock.is_over()) paces_.erase(h.terms_.keys->lock());
}

// It was given up: nobody wants the answers any more, but the nodes have the work.
void engine::slow_down_if_unanswered(hold& h) {
    if (votes(h, [](const node_hold& b) { return b.was_given_up_unanswered(); }) <= agents_.size() - majority()) return;
    pace& of_lock = paces_[h.terms_.keys->lock()];
    if (!h.paced_) count_as_unanswered(h, of_lock);
    of_lock.given_up();
}

void engine::check_pace(hold& h) {
    if (!h.paced_ || is_unanswered(h)) return;
    h.paced_ = false;
    pace& of_lock = pace_of(h);
    --of_lock.unanswered;
    if (h.state_ != state::leaving) of_lock.answered_in_time();
    fill_room(h);
}

}  // namespace holdfast::engine
