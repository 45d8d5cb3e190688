// Who owns which hash slot of a Cluster.
//
// Read as a whole from CLUSTER SHARDS, and patched slot by slot when a member says MOVED. It is what somebody said, not
// what is: a member that is asked by a wrong map refuses, and says better.
//
// Data only. Invariants:
//  (1) members_ has every place once: first the primaries, then the others.
//  (2) An owner is a primary. The index of a primary never changes.
#pragma once

#include "redis/cluster/hash_slot.hpp"
#include "redis/resp/resp_reply.hpp"
#include "redis/url/server_url.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace holdfast::redis {

class slot_map {
public:
    // Of the answer to CLUSTER SHARDS. `asked`: who gave it; its host stands for one that is left empty. `how`: whose
    // ports are wanted. Nothing if it is not of that form, or covers no slot at all.
    static std::optional<slot_map> read(const reply_view& shards, const server_address& asked, transport how);

    // Null: nobody's, as far as is known. Owners are the same if and only if their addresses are.
    const server_address* owner(hash_slot slot) const noexcept {
        const index at = owners_[static_cast<std::size_t>(slot)];
        return at == nobody ? nullptr : &members_[at];
    }
    void assign(hash_slot slot, const server_address& to);

    // Also one without slots, unless it is known to be dead.
    bool is_primary(const server_address& address) const noexcept { return primary_at(address) != nullptr; }
    // As owner() would give it; null if it is not a primary.
    const server_address* primary_at(const server_address& address) const noexcept;
    std::span<const server_address> primaries() const noexcept { return {members_.data(), primaries_}; }
    // The primaries, then replicas, then those who are known to be dead.
    std::span<const server_address> members() const noexcept { return members_; }
    bool has_member(const server_address& address) const noexcept { return find(address).has_value(); }

    // The slots that have another owner than they had, or lost the one they had.
    std::vector<hash_slot> moved_since(const slot_map& earlier) const;

    // Redis 7.2 and later name no slots for a shard in which a dead primary is listed beside its successor. What this
    // map leaves out stays with its owner by the earlier one, if that is a primary still, or goes to who succeeded it.
    // A guess, like all of the map.
    void fill_from(const slot_map& earlier);

private:
    using index = std::uint16_t;
    static constexpr index nobody = UINT16_MAX;
    // Nobody runs a Cluster of so many. It bounds what a server that talks nonsense can make us keep.
    static constexpr std::size_t most_members = 2048;

    slot_map() { owners_.fill(nobody); }
    class reader;

    std::optional<std::size_t> find(const server_address& address) const noexcept;
    // The place as a primary; `nobody` if there is no room for one more.
    index make_primary(const server_address& address);

    std::vector<server_address> members_;
    std::size_t primaries_ = 0;
    std::array<index, hash_slots> owners_{};
    struct succession {
        server_address dead;
        index heir;
    };
    std::vector<succession> successions_;  // in shards for which no slot is named
};

// False if the member is in no shard by its own answer to CLUSTER SHARDS. Servers that know shard ids (Redis from 7.2,
// Valkey; seen with 8.0 and 8.1) start so as primaries without replicas from a node map of Redis 7.0, which has none.
// SPUBLISH then ends them by an assertion. True if in doubt: where all slots are named the member may only have another
// name than ours for it, and a shard without a primary may be its own, which is enough for SPUBLISH.
bool is_in_a_shard(const server_address& member, const reply_view& shards, transport how);

}  // namespace holdfast::redis
