#include "redis/slots/slot_map.hpp"

#include "redis/url/url_text.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace holdfast::redis {
namespace {

// The value of a field in a map of RESP3, or in the list that RESP2 makes of it; none if there is no such field.
std::optional<reply_view> find_field(const reply_view& map, std::string_view name) {
    const bool is_list = map.type() == resp_type::array && map.size() % 2 == 0;
    if (map.type() != resp_type::map && !is_list) return std::nullopt;
    for (auto at = map.begin(); at != map.end(); ++at) {
        const bool is_it = (*at).text() == name;
        ++at;
        if (is_it) return *at;
    }
    return std::nullopt;
}

std::string_view text_field(const reply_view& map, std::string_view name) {
    const auto value = find_field(map, name);
    return value ? value->text() : std::string_view{};
}

// The address of a member by its entry. `asked`: the member that answered; its host replaces an empty one.
std::optional<server_address> read_address(const reply_view& node, const server_address& asked, transport how) {
    // The endpoint is the name that the member prefers; "?" means that this name is not known yet.
    const auto endpoint = find_field(node, "endpoint");
    std::string_view host = endpoint ? endpoint->text() : text_field(node, "ip");
    if (host.empty()) host = asked.host;
    const auto port_field = find_field(node, how == transport::tls ? "tls-port" : "port");
    if (host == "?" || !port_field) return std::nullopt;
    return told_address(host, port_field->to_integer());
}

}  // namespace

// Builds a map. A dead primary with slots is a primary of the map, too: until a replica is promoted it is the owner.
class slot_map::reader {
public:
    reader(const server_address& asked, transport how) : asked_(asked), how_(how) {}

    // False: the form is wrong.
    bool take_shard(const reply_view& shard) {
        const auto slots = find_field(shard, "slots");
        const auto nodes = find_field(shard, "nodes");
        if (!slots || !nodes || !slots->is_aggregate() || !nodes->is_aggregate() || slots->size() % 2 != 0)
            return false;
        const shard_primary primary = take_nodes(*nodes);
        const auto& chosen = primary.alive || slots->size() == 0 ? primary.alive : primary.dead;
        const index owner = chosen ? map_.make_primary(*chosen) : nobody;
        if (slots->size() == 0 && primary.dead && owner != nobody) map_.successions_.push_back({*primary.dead, owner});
        for (auto at = slots->begin(); at != slots->end(); ++at) {
            const auto first = (*at).to_integer();
            const auto last = (*++at).to_integer();
            if (!first || !last || *first < 0 || *last < *first || *last >= std::int64_t{hash_slots}) return false;
            if (owner != nobody) give(*first, *last, owner);
        }
        return true;
    }

    std::optional<slot_map> finish() {
        if (!has_slots_) return std::nullopt;
        for (const auto* some : {&others_, &dead_}) {
            for (const server_address& each : *some) {
                if (!map_.find(each) && map_.members_.size() < most_members) map_.members_.push_back(each);
            }
        }
        return std::move(map_);
    }

private:
    // Some servers list the slots of a shard more than once. So a range stops at the first slot that has an owner, and
    // all ranges together take no more steps than there are slots.
    void give(std::int64_t first, std::int64_t last, index owner) {
        for (auto slot = static_cast<std::size_t>(first); slot <= static_cast<std::size_t>(last); ++slot) {
            if (map_.owners_[slot] != nobody) return;
            map_.owners_[slot] = owner;
            has_slots_ = true;
        }
    }

    // The primaries of a shard: a dead one may be listed beside its successor.
    struct shard_primary {
        std::optional<server_address> alive;
        std::optional<server_address> dead;
    };

    shard_primary take_nodes(const reply_view& nodes) {
        shard_primary found;
        for (const reply_view node : nodes) {
            const auto address = read_address(node, asked_, how_);
            if (!address) continue;
            const bool is_dead = text_field(node, "health") == "fail";
            auto& mine = is_dead ? found.dead : found.alive;
            if (text_field(node, "role") == "master" && !mine) mine = address;
            if (others_.size() + dead_.size() < 2 * most_members) (is_dead ? dead_ : others_).push_back(*address);
        }
        return found;
    }

    const server_address& asked_;
    const transport how_;
    slot_map map_;
    std::vector<server_address> others_;
    std::vector<server_address> dead_;
    bool has_slots_ = false;
};

std::optional<slot_map> slot_map::read(const reply_view& shards, const server_address& asked, transport how) {
    if (shards.type() != resp_type::array || shards.size() > most_members) return std::nullopt;
    reader whole(asked, how);
    for (const reply_view shard : shards) {
        if (!whole.take_shard(shard)) return std::nullopt;
    }
    return whole.finish();
}

std::optional<std::size_t> slot_map::find(const server_address& address) const noexcept {
    const auto found = std::find(members_.begin(), members_.end(), address);
    if (found == members_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - members_.begin());
}

slot_map::index slot_map::make_primary(const server_address& address) {
    auto at = find(address);
    if (!at) {
        if (members_.size() == most_members) return nobody;
        at = members_.size();
        members_.push_back(address);
    }
    if (*at >= primaries_) {
        std::swap(members_[*at], members_[primaries_]);
        at = primaries_++;
    }
    return static_cast<index>(*at);
}

void slot_map::fill_from(const slot_map& earlier) {
    if (std::find(owners_.begin(), owners_.end(), nobody) == owners_.end()) return;
    std::vector<index> now(earlier.primaries_, nobody);  // by index in the earlier map
    for (std::size_t i = 0; i < earlier.primaries_; ++i) {
        const server_address& address = earlier.members_[i];
        if (const auto at = find(address); at && *at < primaries_) now[i] = static_cast<index>(*at);
        for (const succession& each : successions_) {
            if (now[i] == nobody && each.dead == address) now[i] = each.heir;
        }
    }
    for (std::size_t slot = 0; slot < hash_slots; ++slot) {
        const index before = earlier.owners_[slot];
        if (owners_[slot] == nobody && before != nobody) owners_[slot] = now[before];
    }
}

std::vector<hash_slot> slot_map::moved_since(const slot_map& earlier) const {
    // By earlier index: the same primary in this map. So addresses are compared once per primary, not per slot.
    std::vector<const server_address*> now_at;
    for (const server_address& each : earlier.primaries()) now_at.push_back(primary_at(each));
    std::vector<hash_slot> moved;
    for (std::size_t slot = 0; slot < hash_slots; ++slot) {
        const auto each = static_cast<hash_slot>(slot);
        const index before = earlier.owners_[slot];
        const server_address* const after = owner(each);
        const bool same = before == nobody ? after == nullptr : after != nullptr && after == now_at[before];
        if (!same) moved.push_back(each);
    }
    return moved;
}

bool is_in_a_shard(const server_address& member, const reply_view& shards, transport how) {
    if (shards.type() != resp_type::array) return true;
    for (const reply_view shard : shards) {
        const auto nodes = find_field(shard, "nodes");
        if (!nodes || !nodes->is_aggregate()) return true;
        bool has_primary = false;
        for (const reply_view node : *nodes) {
            if (read_address(node, member, how) == member) return true;
            has_primary = has_primary || text_field(node, "role") == "master";
        }
        if (!has_primary) return true;
    }
    const auto map = slot_map::read(shards, member, how);
    if (!map) return false;
    for (std::size_t slot = 0; slot < hash_slots; ++slot) {
        if (map->owner(static_cast<hash_slot>(slot)) == nullptr) return false;
    }
    return true;
}

}  // namespace holdfast::redis
