#include "redis/session/command_queue.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

void command_queue::add(command& request) {
    deadqueue_bound_ = std::min(deadqueue_bound_, request.deadline());
    queue_.push_back(&request);
}

void command_queue::add_before_new(command& request) {
    deadqueue_bound_ = std::min(deadqueue_bound_, request.deadline());
    queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(sent_again_++), &request);
}

bool command_queue::remove(const command& request) {
    const auto found = std::find(queue_.begin(), queue_.end(), &request);
    if (found == queue_.end()) return false;
    if (found - queue_.begin() < static_cast<std::ptrdiff_t>(sent_again_)) --sent_again_;
    queue_.erase(found);
    return true;
}

bool command_queue::contains(const command& request) const {
    return std::find(queue_.begin(), queue_.end(), &request) != queue_.end();
}

std::deque<command*> command_queue::take_all() {
    std::deque<command*> taken = std::exchange(queue_, {});
    clear();
    return taken;
}

std::deque<command*> command_queue::take_due(instant now) {
    if (now < earliest_deadline()) return {};
    return take_if([now](const command& each) { return each.deadline() <= now; });
}

void command_queue::clear() noexcept {
    queue_.clear();
    sent_again_ = 0;
    deadqueue_bound_ = never;
}

}  // namespace holdfast::redis
