#include "engine/quorum/node_set.hpp"

#include "redis/url/duration.hpp"

#include <functional>

namespace holdfast::engine {

std::size_t node_set::links_up(const hold& h) const {
    return count(h, [this](const node_hold& n) { return of(n).link_is_up(n); });
}

bool node_set::was_reached() const noexcept {
    const auto reached = std::ranges::count_if(agents_, [](const auto& one) { return one->was_reached(); });
    return static_cast<std::size_t>(reached) >= majority();
}

node_holds node_set::those(hold& h, bool (*counts)(const hold&, const node_hold&) noexcept) {
    node_holds found;
    for (node_hold& n : h.nodes()) {
        if (counts(h, n)) found.push_back(&n);
    }
    return found;
}

instant node_set::validity_of(const node_holds& backing) const {
    if (backing.size() == 1) return backing.front()->valid_until;
    boost::container::small_vector<instant, 7> ends;
    for (const node_hold* const n : backing) ends.push_back(n->valid_until);
    const auto decisive = ends.begin() + static_cast<std::ptrdiff_t>(majority() - 1);
    std::nth_element(ends.begin(), decisive, ends.end(), std::greater<>());
    return *decisive;
}

recovery node_set::recovery_of(const lock_keys& lock, instant now) const {
    recovery found;
    std::vector<milliseconds> waits;  // of nodes that vote, or will: one that is out of reach may never do so
    for (const auto& each : agents_) {
        const milliseconds wait = each->recovers_in(lock, now);
        if (wait > milliseconds(0)) found.nodes.push_back({each->server(), wait});
        if (wait > milliseconds(0) || each->node().link_is_up(lock)) waits.push_back(wait);
    }
    std::ranges::sort(waits);
    if (waits.size() >= majority()) found.enough_in = waits[majority() - 1];
    return found;
}

refusal node_set::recovering(const lock_keys& lock, instant now) const {
    const recovery found = recovery_of(lock, now);
    refusal why{errc::recovering, "", {}, {}, found.enough_in};
    for (const recovery::node& each : found.nodes) {
        const auto rounded = std::chrono::ceil<std::chrono::seconds>(each.votes_in);
        why.detail += (why.detail.empty() ? "" : ", ") + each.server + " grants in " + redis::format_duration(rounded);
    }
    return why;
}

std::string node_set::why_out_of_reach(const hold& h) const {
    std::string reasons;
    for (const node_hold& n : h.nodes()) {
        if (!of(n).link_is_up(n)) reasons += "; " + of(n).node().why_not_up(*h.terms().keys).detail;
    }
    return reasons;
}

}  // namespace holdfast::engine
