#include "redis/cluster/cluster_links.hpp"

#include <algorithm>

namespace holdfast::redis {
namespace {

constexpr std::size_t most_attempts_at_once = 3;

}  // namespace

const server_address* cluster_links::some_primary() const {
    if (!map_) return nullptr;
    const auto all = map_->primaries();
    const auto found = std::find_if(all.begin(), all.end(), [this](const auto& each) { return serves(each); });
    return found == all.end() ? nullptr : &*found;
}

cluster_link* cluster_links::next_in_turn() {
    std::vector<cluster_link*> all;
    for (const auto& [address, each] : links_) {
        if (each->up()) all.push_back(each.get());
    }
    return all.empty() ? nullptr : all[next_asked_++ % all.size()];
}

slot_set cluster_links::slots_of(const cluster_link& member, const slot_set& which) const {
    const server_address* const primary = map_->primary_at(member.address());
    if (primary == nullptr) return {};
    return slot_set::all_that([&](hash_slot slot) { return which.has(slot) && map_->owner(slot) == primary; });
}

bool cluster_links::misses_a_primary() const {
    return std::any_of(links_.begin(), links_.end(),
                       [this](const auto& each) { return each.second->has_failed && map_->is_primary(each.first); });
}

cluster_link& cluster_links::reach(const server_address& address, instant now) {
    auto& link = links_[address];
    if (link == nullptr) {
        link = std::make_unique<cluster_link>(events_, address);
        link->is_primary = map_ && map_->is_primary(address);
        effects_.add(open_link{link.get()});
    }
    link->hurry(now);
    return *link;
}

void cluster_links::reach_some_of(std::span<const server_address> all, instant now) {
    const auto is_tried = [this](const server_address& each) {
        const cluster_link* const known = find(each);
        return known != nullptr && !known->has_failed;
    };
    auto attempts = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), is_tried));
    for (std::size_t i = 0; i < all.size() && attempts < most_attempts_at_once; ++i) {
        const server_address& each = all[next_reached_++ % all.size()];
        if (is_tried(each)) continue;
        reach(each, now);
        ++attempts;
    }
}

void cluster_links::update_primaries() {
    for (const auto& [address, each] : links_) {
        each->told_up = each->serves();
        each->is_primary = map_->is_primary(address);
    }
}

void cluster_links::regreet_promoted(const slot_map& by) {
    for (const auto& [address, each] : links_) {
        if (!each->up() || each->serves() || !by.is_primary(address)) continue;
        effects_.drop(*each, {errc::unreachable, each->display() + ": was a replica when it was last greeted"},
                      drop_link::next::hurry);
    }
}

std::vector<std::unique_ptr<cluster_link>> cluster_links::take_all() {
    std::vector<std::unique_ptr<cluster_link>> taken;
    for (auto& [address, each] : links_) taken.push_back(std::move(each));
    links_.clear();
    return taken;
}

}  // namespace holdfast::redis
