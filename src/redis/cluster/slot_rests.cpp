#include "redis/cluster/slot_rests.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

constexpr std::chrono::milliseconds shortest_rest{5};
constexpr std::chrono::milliseconds longest_rest{200};
constexpr unsigned most_rest_doublings = 6;
constexpr std::chrono::seconds half_runs_remembered_for{1};

}  // namespace

void slot_rests::begin(hash_slot slot, cause of, failure why, instant now) {
    const std::chrono::nanoseconds whole = std::min<std::chrono::nanoseconds>(
        shortest_rest * (1LL << std::min(of.rests_before, most_rest_doublings)), longest_rest);
    const instant until = now + jitter_.spread(whole);
    rest& it = rests_[slot];
    it.until = std::max(it.until, until);
    if (of.overtakes) it.until_for_overtakers = std::max(it.until_for_overtakers, until);
    it.why = std::move(why);
    ends_at_ = std::min(ends_at_, until);
}

void slot_rests::begin_after_half_run(hash_slot slot, failure why, instant now) {
    std::erase_if(half_runs_, [now](const auto& each) { return each.second.last + half_runs_remembered_for < now; });
    half_runs& those = half_runs_[slot];
    those.last = now;
    begin(slot, {.rests_before = those.in_a_row++}, std::move(why), now);
}

std::optional<slot_set> slot_rests::end_due(instant now) {
    if (now < ends_at_) return std::nullopt;
    ends_at_ = never;
    slot_set ended;
    std::erase_if(rests_, [&](const auto& entry) {
        const auto& [slot, each] = entry;
        if (each.until <= now) {
            ended.add(slot);
            return true;
        }
        const bool some_overtake_later = each.until_for_overtakers > now;
        ends_at_ = std::min({ends_at_, each.until, some_overtake_later ? each.until_for_overtakers : never});
        return false;
    });
    return ended;
}

bool slot_rests::holds_back(const command& request, instant now) const {
    const auto found = rests_.find(slot_of(request.first_key()));
    if (found == rests_.end()) return false;
    return !routing::passes_others(request) || now < found->second.until_for_overtakers;
}

}  // namespace holdfast::redis
