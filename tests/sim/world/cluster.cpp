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

struct shard_node {
    const std::string& address;  // host:port
    std::string_view role;
};

std::string node_of_shard(const shard_node& who) {
    const auto colon = who.address.rfind(':');
    const std::string host = who.address.substr(0, colon);
    return "%7\r\n" + bulk("id") + bulk(who.address) + bulk("port") + ":" + who.address.substr(colon + 1) + "\r\n" +
           bulk("ip") + bulk(host) + bulk("endpoint") + bulk(host) + bulk("role") + bulk(who.role) +
           bulk("replication-offset") + number(0) + bulk("health") + bulk("online");
}

}  // namespace

slot_standing cluster::view::standing_of(std::string_view key) const {
    const unsigned slot = all_.slot_of_(key);
    if (all_.coverage_ == coverage::broken) return {slot, standing_at::nowhere};
    const slot_state state = all_.look(slot);
    if (state.owner == address_)
        return {slot, state.target.empty() ? standing_at::here : standing_at::leaving, state.target};
    if (state.target == address_) return {slot, state.arrived ? standing_at::here : standing_at::arriving, state.owner};
    return {slot, standing_at::elsewhere, all_.owner_as_seen_by(address_, state)};
}

cluster::member& cluster::add_member(server& fresh, std::string address) {
    member& added = members_[address];
    added.serves = &fresh;
    added.sees = std::make_unique<view>(*this, std::move(address));
    fresh.join(added.sees.get());
    return added;
}

void cluster::add(server& fresh, std::string address) {
    if (first_.empty()) first_ = address;
    add_member(fresh, std::move(address));
}

void cluster::add_replica(server& fresh, std::string address, std::string_view of) {
    add_member(fresh, std::move(address)).follows = of;
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

server& cluster::at(std::string_view address) const {
    const auto found = members_.find(address);
    if (found == members_.end()) throw std::logic_error("no member at " + std::string{address});
    return *found->second.serves;
}

server& cluster::server_of(const std::string& key) const {
    const slot_state state = look(slot_of_(key));
    server& old_owner = at(state.owner);
    return state.target.empty() || old_owner.peek(key) != nullptr ? old_owner : at(state.target);
}

std::vector<std::string> cluster::primaries() const {
    std::vector<std::string> all;
    for (const auto& [address, each] : members_) {
        if (each.follows.empty()) all.push_back(address);
    }
    return all;
}

std::vector<std::string> cluster::replicas() const {
    std::vector<std::string> all;
    for (const auto& [address, each] : members_) {
        if (!each.follows.empty()) all.push_back(address);
    }
    return all;
}

void cluster::assign(unsigned slot, std::string_view to) {
    at(to);
    state_of(slot) = {std::string(to)};
}

void cluster::begin_move(unsigned slot, std::string_view to) {
    slot_state& state = state_of(slot);
    if (!state.target.empty() || state.owner == to) throw std::logic_error("the slot cannot move there now");
    at(to);
    state.target = to;
    state.arrived = false;
}

void cluster::move_key(const std::string& key) {
    const slot_state state = look(slot_of_(key));
    if (state.target.empty()) throw std::logic_error("the slot of " + key + " does not move");
    server &old_owner = at(state.owner), &new_owner = at(state.target);
    if (old_owner.peek(key) != nullptr) return old_owner.migrate(key, new_owner);
    if (new_owner.peek(key) != nullptr) new_owner.migrate(key, old_owner);
}

void cluster::arrive(unsigned slot) {
    state_of(slot).arrived = true;
}

void cluster::finish_move(unsigned slot) {
    slot_state& state = state_of(slot);
    if (state.target.empty()) throw std::logic_error("the slot does not move");
    state.former = std::exchange(state.owner, std::exchange(state.target, {}));
    at(state.former).slot_left([&](std::string_view name) { return slot_of_(name) == slot; });
}

void cluster::propagate(unsigned slot) {
    state_of(slot).former.clear();
}

void cluster::cancel_move(unsigned slot) {
    state_of(slot).target.clear();
}

void cluster::promote(std::string_view replica, std::string_view instead_of) {
    at(replica);
    at(instead_of);
    for (auto& [address, each] : members_) {
        if (each.follows == instead_of || address == instead_of) each.follows = replica;
        if (address == replica) each.follows.clear();
    }
    if (first_ == instead_of) first_ = replica;
    for (auto& [slot, state] : slots_) {
        if (state.owner == instead_of || state.target == instead_of) state.target.clear();
        if (state.owner == instead_of) state.owner = replica;
        if (state.former == instead_of || state.former == replica) state.former.clear();
    }
}

// The members of the last move know of it.
const std::string& cluster::owner_as_seen_by(std::string_view address, const slot_state& state) const {
    const bool knows = state.former.empty() || state.former == address || state.owner == address;
    return knows ? state.owner : state.former;
}

std::string cluster::shards_as_seen_by(const std::string& address) const {
    std::map<std::string, std::vector<std::pair<unsigned, unsigned>>, std::less<>> ranges;
    for (const std::string& each : primaries()) ranges[each];
    unsigned next = 0;
    const auto rest_until = [&](unsigned end) {
        if (next < end) ranges[first_].emplace_back(next, end - 1);
    };
    for (const auto& [slot, state] : slots_) {
        const bool has_arrived = state.arrived && state.target == address;
        rest_until(slot);
        ranges[has_arrived ? address : owner_as_seen_by(address, state)].emplace_back(slot, slot);
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
