#include "engine/common_clock.hpp"

#include <boost/container/small_vector.hpp>

namespace holdfast::engine {
namespace {

// Tickets may be off by this much, because clocks are read with a delay.
constexpr milliseconds tickets_agree_within{100};
constexpr std::chrono::seconds tickets_rest_for{1};
// No node takes that for its next token; all tell what time it is.
constexpr fencing_token no_idea_of_the_time = 1;

std::chrono::microseconds since_boot(instant when) {
    return std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch());
}

}  // namespace

void common_clock::set(std::size_t node, std::chrono::microseconds shown, instant now) {
    at_boot_[node] = shown - since_boot(now);
}

void common_clock::learn(std::size_t node, std::chrono::microseconds shown, window when) {
    const std::chrono::microseconds least = shown - since_boot(when.answered);
    const std::chrono::microseconds most = shown - since_boot(when.asked);
    at_boot_[node] = std::clamp(at_boot_[node].value_or(least), least, most);
}

// Unless a majority is known, nothing can be said: all of them might be wrong.
std::optional<std::chrono::microseconds> common_clock::common_at_boot() const {
    boost::container::small_vector<std::chrono::microseconds, 7> known;
    for (const auto& clock : at_boot_) {
        if (clock) known.push_back(*clock);
    }
    if (known.size() < at_boot_.size() / 2 + 1) return std::nullopt;
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    return *middle;
}

std::optional<std::uint64_t> common_clock::common_us(instant now) const {
    const auto at_boot = common_at_boot();
    if (!at_boot) return std::nullopt;
    return static_cast<std::uint64_t>((*at_boot + since_boot(now)).count());
}

fencing_token common_clock::proposal(instant now) const {
    if (!several()) return 0;
    const auto clock = common_us(now);
    return clock ? std::max(*clock, floor_ + 1) : no_idea_of_the_time;
}

std::string common_clock::make_ticket(instant now) {
    const std::uint64_t before = last_ticket_;
    if (ticket_of(now).empty()) return {};
    last_ticket_ = std::max(last_ticket_, before + 1);
    return std::to_string(last_ticket_);
}

std::string common_clock::ticket_of(instant asked) {
    const auto clock = common_us(asked);
    if (!clock) return {};
    if (!tickets_by_) tickets_by_ = common_at_boot();
    last_ticket_ = std::max(*clock, last_ticket_);
    return std::to_string(*clock);
}

bool common_clock::may_move_tickets(instant now) const noexcept {
    return several() && now >= tickets_moved_ + tickets_rest_for;
}

std::optional<std::uint64_t> common_clock::move_tickets(instant now) {
    const auto clock = common_at_boot();
    if (!clock || !tickets_by_ || std::chrono::abs(*clock - *tickets_by_) <= tickets_agree_within) return std::nullopt;
    const auto by = static_cast<std::uint64_t>((*clock - *tickets_by_).count());
    tickets_by_ = clock;
    tickets_moved_ = now;
    last_ticket_ += by;
    return by;
}

}  // namespace holdfast::engine
