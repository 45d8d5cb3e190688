#include "engine/local/waiting_claims.hpp"

namespace holdfast::engine::local {

void waiting_claims::add(claim& wish) noexcept {
    latest_deadline_ = waiting_.empty() ? wish.limit.deadline : std::max(latest_deadline_, wish.limit.deadline);
    waiting_.push_back(wish);
    if (wish.want == access::shared) ++readers_;
}

void waiting_claims::remove(claim& waiter) noexcept {
    waiting_.erase(waiting_.iterator_to(waiter));
    if (waiter.want == access::shared) --readers_;
}

const claim* waiting_claims::next() const noexcept {
    if (waiting_.empty()) return nullptr;
    if (settings_.prefer == preference::arrival || settings_.kind == lock_kind::mutex) return &waiting_.front();
    const access first = settings_.prefer == preference::readers ? access::shared : access::exclusive;
    const auto found = std::ranges::find_if(waiting_, [first](const claim& c) { return c.want == first; });
    return found == waiting_.end() ? &waiting_.front() : &*found;
}

bool waiting_claims::would_be_next(const claim& wish) const noexcept {
    if (settings_.prefer == preference::readers && wish.want == access::shared) return readers_ == 0;
    if (settings_.prefer == preference::writers && wish.want == access::exclusive) return !has_writer();
    return waiting_.empty();
}

}  // namespace holdfast::engine::local
