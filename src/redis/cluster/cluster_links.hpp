// The links to the members of a Cluster: at most one to each, made when something is for it.
#pragma once

#include "redis/cluster/cluster_link.hpp"
#include "redis/slots/slot_map.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace holdfast::redis {

class cluster_links {
public:
    // `map`: none until a member has told it.
    cluster_links(const std::optional<slot_map>& map, link_events& events, cluster_effects& effects)
        : map_(map), events_(events), effects_(effects) {}

    cluster_link* find(const server_address& address) const {
        const auto found = links_.find(address);
        return found == links_.end() ? nullptr : found->second.get();
    }
    // Null: no known owner.
    const server_address* owner(hash_slot slot) const { return map_ ? map_->owner(slot) : nullptr; }
    // The link to the owner of a slot; null if there is none.
    cluster_link* to_owner(hash_slot slot) const {
        const server_address* const its = owner(slot);
        return its == nullptr ? nullptr : find(*its);
    }
    bool serves(const server_address& address) const {
        const cluster_link* const there = find(address);
        return there != nullptr && there->serves();
    }
    // A primary that serves; null if there is none.
    const server_address* some_primary() const;
    // The member to which a command for this slot goes: its owner by the map. Some servers leave slots out that were
    // taken over. Any primary is asked for those: it answers MOVED or that the slot is down.
    const server_address* whom_to_ask(hash_slot slot) const {
        const server_address* const its = owner(slot);
        return its == nullptr ? some_primary() : its;
    }
    bool any_is_up() const {
        return std::any_of(links_.begin(), links_.end(), [](const auto& each) { return each.second->up(); });
    }
    // All links that are up take turns; null if there is none.
    cluster_link* next_in_turn();
    std::size_t size() const noexcept { return links_.size(); }
    // The slots among `which` that belong to the member.
    slot_set slots_of(const cluster_link& member, const slot_set& which = slot_set::all()) const;
    // One of its primaries could not be reached. Its successor may be named at any time.
    bool misses_a_primary() const;
    template <class Action>
    void for_each(Action action) const {
        for (const auto& [address, each] : links_) action(*each);
    }

    // Makes the link, or hurries it.
    cluster_link& reach(const server_address& address, instant now);
    // Reaches members in turn, until a few attempts are in flight.
    void reach_some_of(std::span<const server_address> all, instant now);
    void restart_turns() noexcept { next_reached_ = 0; }

    void came_up(cluster_link& which) noexcept {
        which.number = ++times_up_;
        which.has_failed = false;
    }
    // There is another map.
    void update_primaries();
    // A replica that is promoted keeps its links, and the facts of a link still say what the member was. So these links
    // are made anew, once for every map that says so: a member that spreads an old map costs a connection each time.
    void regreet_promoted(const slot_map& by);
    // Takes the links out for which `wanted(const cluster_link&)` is true. The last link that is up stays: it is asked
    // for the next map.
    template <class Predicate>
    std::vector<std::unique_ptr<cluster_link>> take_if(Predicate wanted);
    std::vector<std::unique_ptr<cluster_link>> take_all();

private:
    const std::optional<slot_map>& map_;
    link_events& events_;
    cluster_effects& effects_;
    std::map<server_address, std::unique_ptr<cluster_link>> links_;
    std::uint64_t times_up_ = 0;
    std::size_t next_asked_ = 0;
    std::size_t next_reached_ = 0;
};

template <class Predicate>
std::vector<std::unique_ptr<cluster_link>> cluster_links::take_if(Predicate wanted) {
    std::vector<std::unique_ptr<cluster_link>> taken;
    std::size_t up = 0;
    for (const auto& [address, each] : links_) up += each->up() ? 1U : 0U;
    for (auto next = links_.begin(); next != links_.end();) {
        const auto each = next++;
        const bool is_up = each->second->up();
        if (!wanted(std::as_const(*each->second)) || (is_up && up == 1)) continue;
        if (is_up) --up;
        taken.push_back(std::move(each->second));
        links_.erase(each);
    }
    return taken;
}

}  // namespace holdfast::redis
