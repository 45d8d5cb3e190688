#include "world/cluster.hpp"

#include <stdexcept>
#include <utility>

namespace holdfast::sim {

using where = slot_standing::where;

slot_standing cluster::view::standing_of(std::string_view key) const {
    const unsigned slot = all_.slot_of_(key);
    const slot_state state = all_.look(slot);
    if (state.owner == place_) return {slot, state.taker.empty() ? where::here : where::leaving, state.taker};
    return {slot, state.taker == place_ ? where::arriving : where::elsewhere, state.owner};
}

void cluster::add(server& fresh, std::string place) {
    if (first_.empty()) first_ = place;
    member& entered = members_[place];
    entered.serves = &fresh;
    entered.sees = std::make_unique<view>(*this, std::move(place));
    fresh.join(entered.sees.get());
}

const std::string& cluster::owner(unsigned slot) const {
    const auto known = slots_.find(slot);
    return known == slots_.end() ? first_ : known->second.owner;
}

cluster::slot_state cluster::look(unsigned slot) const {
    const auto known = slots_.find(slot);
    return known == slots_.end() ? slot_state{first_, {}} : known->second;
}

cluster::slot_state& cluster::state_of(unsigned slot) {
    return slots_.try_emplace(slot, slot_state{first_, {}}).first->second;
}

server& cluster::at(std::string_view place) const {
    const auto found = members_.find(place);
    if (found == members_.end()) throw std::logic_error("no member at " + std::string{place});
    return *found->second.serves;
}

void cluster::begin_move(unsigned slot, std::string_view to) {
    slot_state& state = state_of(slot);
    if (!state.taker.empty() || state.owner == to) throw std::logic_error("the slot cannot move there now");
    at(to);
    state.taker = to;
}

void cluster::move_key(const std::string& key) {
    const slot_state state = look(slot_of_(key));
    if (state.taker.empty()) throw std::logic_error("the slot of " + key + " does not move");
    server &old_owner = at(state.owner), &new_owner = at(state.taker);
    if (old_owner.peek(key) != nullptr) return old_owner.give(key, new_owner);
    if (new_owner.peek(key) != nullptr) new_owner.give(key, old_owner);
}

void cluster::finish_move(unsigned slot) {
    slot_state& state = state_of(slot);
    if (state.taker.empty()) throw std::logic_error("the slot does not move");
    const std::string before = std::exchange(state.owner, std::exchange(state.taker, {}));
    at(before).slot_left([&](std::string_view name) { return slot_of_(name) == slot; });
}

void cluster::call_off_move(unsigned slot) {
    state_of(slot).taker.clear();
}

}  // namespace holdfast::sim
