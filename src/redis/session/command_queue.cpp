#include "redis/session/command_queue.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

void command_queue::add(command& request) {
    deadline_bound_ = std::min(deadline_bound_, request.deadline());
    line_.push_back(&request);
}

void command_queue::add_before_new(command& request) {
    deadline_bound_ = std::min(deadline_bound_, request.deadline());
    line_.insert(line_.begin() + static_cast<std::ptrdiff_t>(sent_again_++), &request);
}

bool command_queue::remove(const command& request) {
    const auto found = std::find(line_.begin(), line_.end(), &request);
    if (found == line_.end()) return false;
    if (found - line_.begin() < static_cast<std::ptrdiff_t>(sent_again_)) --sent_again_;
    line_.erase(found);
    return true;
}

bool command_queue::contains(const command& request) const {
    return std::find(line_.begin(), line_.end(), &request) != line_.end();
}

std::deque<command*> command_queue::take_all() {
    std::deque<command*> taken = std::exchange(line_, {});
    clear();
    return taken;
}

std::deque<command*> command_queue::take_due(instant now) {
    if (now < earliest_deadline()) return {};
    return take_if([now](const command& each) { return each.deadline() <= now; });
}

void command_queue::clear() noexcept {
    line_.clear();
    sent_again_ = 0;
    deadline_bound_ = never;
}

}  // namespace holdfast::redis
