#include "world/cluster.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace holdfast::sim {

using standing_at = slot_standing::where;

namespace {

constexpr unsigned last_slot = 16383;

std::string number(std::size_t what) {
    return ":" + std::to_string(what) + "\r\n";
}

struct seat {
    const std::string& place;  // host:port
    std::string_view role;
};

std::string node_of_shard(const seat& who) {
    const auto colon = who.place.rfind(':');
    const std::string host = who.place.substr(0, colon);
    return "%7\r\n" + bulk("id") + bulk(who.place) + bulk("port") + ":" + who.place.substr(colon + 1) + "\r\n" +
           bulk("ip") + bulk(host) + bulk("endpoint") + bulk(host) + bulk("role") + bulk(who.role) +
           bulk("replication-offset") + number(0) + bulk("health") + bulk("online");
}

}  // namespace

slot_standing cluster::view::standing_of(std::string_view key) const {
    const unsigned slot = all_.slot_of_(key);
    if (all_.coverage_ == coverage::broken) return {slot, standing_at::nowhere};
    const slot_state state = all_.look(slot);
    if (state.owner == place_)
        return {slot, state.taker.empty() ? standing_at::here : standing_at::leaving, state.taker};
    if (state.taker == place_) return {slot, state.arrived ? standing_at::here : standing_at::arriving, state.owner};
    return {slot, standing_at::elsewhere, all_.owner_as_seen_by(place_, state)};
}

cluster::member& cluster::enter(server& fresh, std::string place) {
    member& entered = members_[place];
    entered.serves = &fresh;
    entered.sees = std::make_unique<view>(*this, std::move(place));
    fresh.join(entered.sees.get());
    return entered;
}

void cluster::add(server& fresh, std::string place) {
    if (first_.empty()) first_ = place;
    enter(fresh, std::move(place));
}

void cluster::add_replica(server& fresh, std::string place, std::string_view of) {
    enter(fresh, std::move(place)).follows = of;
}

const std::string& cluster::owner(unsigned slot) const {
    const auto known = slots_.find(slot);
    return known == slots_.end() ? first_ : known->second.owner;
}

cluster::slot_state cluster::look(unsigned slot) const {
    const auto known = slots_.find(slot);
    return known == slots_.end() ? slot_state{first_} : known->second;
}

cluster::slot_state& cluster::state_of(unsigned slot) {
    return slots_.try_emplace(slot, slot_state{first_}).first->second;
}

server& cluster::at(std::string_view place) const {
    const auto found = members_.find(place);
    if (found == members_.end()) throw std::logic_error("no member at " + std::string{place});
    return *found->second.serves;
}

server& cluster::home_of(const std::string& key) const {
    const slot_state state = look(slot_of_(key));
    server& old_owner = at(state.owner);
    return state.taker.empty() || old_owner.peek(key) != nullptr ? old_owner : at(state.taker);
}

std::vector<std::string> cluster::primaries() const {
    std::vector<std::string> all;
    for (const auto& [place, each] : members_) {
        if (each.follows.empty()) all.push_back(place);
    }
    return all;
}

std::vector<std::string> cluster::replicas() const {
    std::vector<std::string> all;
    for (const auto& [place, each] : members_) {
        if (!each.follows.empty()) all.push_back(place);
    }
    return all;
}

void cluster::assign(unsigned slot, std::string_view to) {
    at(to);
    state_of(slot) = {std::string(to)};
}

void cluster::begin_move(unsigned slot, std::string_view to) {
    slot_state& state = state_of(slot);
    if (!state.taker.empty() || state.owner == to) throw std::logic_error("the slot cannot move there now");
    at(to);
    state.taker = to;
    state.arrived = false;
}

void cluster::move_key(const std::string& key) {
    const slot_state state = look(slot_of_(key));
    if (state.taker.empty()) throw std::logic_error("the slot of " + key + " does not move");
    server &old_owner = at(state.owner), &new_owner = at(state.taker);
    if (old_owner.peek(key) != nullptr) return old_owner.give(key, new_owner);
    if (new_owner.peek(key) != nullptr) new_owner.give(key, old_owner);
}

void cluster::arrive(unsigned slot) {
    state_of(slot).arrived = true;
}

void cluster::finish_move(unsigned slot) {
    slot_state& state = state_of(slot);
    if (state.taker.empty()) throw std::logic_error("the slot does not move");
    state.former = std::exchange(state.owner, std::exchange(state.taker, {}));
    at(state.former).slot_left([&](std::string_view name) { return slot_of_(name) == slot; });
}

void cluster::spread(unsigned slot) {
    state_of(slot).former.clear();
}

void cluster::call_off_move(unsigned slot) {
    state_of(slot).taker.clear();
}

void cluster::promote(std::string_view replica, std::string_view instead_of) {
    at(replica);
    at(instead_of);
    for (auto& [place, each] : members_) {
        if (each.follows == instead_of || place == instead_of) each.follows = replica;
        if (place == replica) each.follows.clear();
    }
    if (first_ == instead_of) first_ = replica;
    for (auto& [slot, state] : slots_) {
        if (state.owner == instead_of || state.taker == instead_of) state.taker.clear();
        if (state.owner == instead_of) state.owner = replica;
        if (state.former == instead_of || state.former == replica) state.former.clear();
    }
}

// Whoever had a part in the last move knows of it.
const std::string& cluster::owner_as_seen_by(std::string_view place, const slot_state& state) const {
    const bool knows = state.former.empty() || state.former == place || state.owner == place;
    return knows ? state.owner : state.former;
}

std::string cluster::shards_as_seen_by(const std::string& place) const {
    std::map<std::string, std::vector<std::pair<unsigned, unsigned>>, std::less<>> ranges;
    for (const std::string& each : primaries()) ranges[each];
    unsigned next = 0;
    const auto rest_until = [&](unsigned end) {
        if (next < end) ranges[first_].emplace_back(next, end - 1);
    };
    for (const auto& [slot, state] : slots_) {
        const bool has_arrived = state.arrived && state.taker == place;
        rest_until(slot);
        ranges[has_arrived ? place : owner_as_seen_by(place, state)].emplace_back(slot, slot);
        next = slot + 1;
    }
    rest_until(last_slot + 1);
    std::string out = "*" + std::to_string(ranges.size()) + "\r\n";
    for (const auto& [primary, its] : ranges) {
        out += "%2\r\n" + bulk("slots") + "*" + std::to_string(2 * its.size()) + "\r\n";
        for (const auto& [from, to] : its) out += number(from) + number(to);
        std::string nodes = node_of_shard({primary, "master"});
        std::size_t count = 1;
        for (const auto& [other, each] : members_) {
            if (each.follows != primary) continue;
            nodes += node_of_shard({other, "replica"});
            ++count;
        }
        out += bulk("nodes") + "*" + std::to_string(count) + "\r\n" + nodes;
    }
    return out;
}

}  // namespace holdfast::sim
