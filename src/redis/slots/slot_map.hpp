// The owners of the hash slots of a Cluster.
//
// Read as a whole from CLUSTER SHARDS, and patched slot by slot by MOVED. It may be wrong: then a member refuses a
// command and names the owner.
//
// Data only. Invariants:
//  (1) members_ has every address once: first the primaries, then the others.
//  (2) An owner is a primary. The index of a primary never changes.
#pragma once

#include "redis/resp/resp_reply.hpp"
#include "redis/slots/hash_slot.hpp"
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
    // From the answer to CLUSTER SHARDS. `asked`: the member that answered; its host replaces an empty one. `how`
    // selects the port. None if the form is wrong, or no slot has an owner.
    static std::optional<slot_map> read(const reply_view& shards, const server_address& asked, transport how);

    // Null: no known owner. Two owners are the same if and only if the pointers are equal.
    const server_address* owner(hash_slot slot) const noexcept {
        const index at = owners_[static_cast<std::size_t>(slot)];
        return at == nobody ? nullptr : &members_[at];
    }
    void assign(hash_slot slot, const server_address& to) {
        owners_[static_cast<std::size_t>(slot)] = make_primary(to);
    }

    // True also for a primary without slots, unless it is known to be dead.
    bool is_primary(const server_address& address) const noexcept { return primary_at(address) != nullptr; }
    // The pointer that owner() returns for this primary; null if it is not a primary.
    const server_address* primary_at(const server_address& address) const noexcept {
        const auto at = find(address);
        return at && *at < primaries_ ? &members_[*at] : nullptr;
    }
    std::span<const server_address> primaries() const noexcept { return {members_.data(), primaries_}; }
    // Primaries, then replicas, then members that are known to be dead.
    std::span<const server_address> members() const noexcept { return members_; }
    bool has_member(const server_address& address) const noexcept { return find(address).has_value(); }

    // The slots whose owner is another one, or none any more.
    std::vector<hash_slot> moved_since(const slot_map& earlier) const;

    // Redis 7.2 and later list no slots for a shard that contains a dead primary and its successor. A slot that this
    // map leaves out stays with its owner by the earlier map, if that is still a primary, or goes to the successor.
    void fill_from(const slot_map& earlier);

private:
    using index = std::uint16_t;
    static constexpr index nobody = UINT16_MAX;
    // No Cluster is as large. Bounds the memory that a faulty server can cause.
    static constexpr std::size_t most_members = 2048;

    slot_map() { owners_.fill(nobody); }
    class reader;

    std::optional<std::size_t> find(const server_address& address) const noexcept;
    // The index as a primary; `nobody` if there is no room for another.
    index make_primary(const server_address& address);

    std::vector<server_address> members_;
    std::size_t primaries_ = 0;
    std::array<index, hash_slots> owners_{};
    struct succession {
        server_address dead;
        index heir;
    };
    std::vector<succession> successions_;  // in shards without slots
};

// False if the member is in no shard by its own answer to CLUSTER SHARDS. Servers with shard ids (Redis from 7.2,
// Valkey; seen with 8.0 and 8.1) can start so, as primaries without replicas, from a node map of Redis 7.0, which has
// no ids. SPUBLISH then crashes them by an assertion. True if in doubt: if all slots have owners, the member may have
// another name than ours for itself; and a shard without a primary may be its own, which is enough for SPUBLISH.
bool is_in_a_shard(const server_address& member, const reply_view& shards, transport how);

}  // namespace holdfast::redis
