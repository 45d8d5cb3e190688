// A Cluster of simulated servers: which member owns which slot, and moves of slots.
//
// A move has the steps of a real one: it begins, keys move one by one, and it ends or is cancelled. A key moves with
// its remaining time to live, so its expiry is another point in time by the other clock. The new owner learns of the
// end first. From then on it serves the slot, while the old owner still redirects by ASK. Then the old owner gives up
// the slot and unsubscribes the listeners of its channels. The other members may learn of the move later still: until
// then they redirect to the old owner and show an old map.
//
// A replica takes over from a primary with all slots; all members know that at once. Not modelled: subscriptions on
// replicas.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server_model/slot_guard.hpp"
#include "world/server.hpp"

namespace holdfast::sim {

class cluster {
public:
    /// Maps a key to its slot.
    using slot_function = std::function<unsigned(std::string_view)>;

    explicit cluster(slot_function slot_of) : slot_of_(std::move(slot_of)) {}

    /// Adds a primary with this address (host:port). The first one owns all slots. The server outlives the cluster.
    void add(server& fresh, std::string address);
    /// Adds a replica of a primary.
    void add_replica(server& fresh, std::string address, std::string_view of);

    const std::string& owner(unsigned slot) const;
    bool is_moving(unsigned slot) const { return !look(slot).target.empty(); }
    /// The server that has the key, or would receive it.
    server& server_of(const std::string& key) const;
    std::vector<std::string> primaries() const;
    std::vector<std::string> replicas() const;
    server& at(std::string_view address) const;

    /// Assigns a slot to a primary, as if it had always owned it.
    void assign(unsigned slot, std::string_view to);

    void begin_move(unsigned slot, std::string_view to);
    /// Moves one key of a moving slot, from the member that has it to the other one.
    void move_key(const std::string& key);
    /// The new owner learns that it owns the slot.
    void arrive(unsigned slot);
    /// The target owns the slot from now on, with the keys that have moved; the other keys are lost, as on a real
    /// Cluster.
    void finish_move(unsigned slot);
    /// The other members learn of the move.
    void propagate(unsigned slot);
    /// Cancels the move. Keys that have moved must have been moved back before.
    void cancel_move(unsigned slot);

    /// The replica becomes the primary of all slots of that primary, which becomes its replica. Moves of either are
    /// cancelled.
    void promote(std::string_view replica, std::string_view instead_of);

    /// Broken: every member refuses every command, because a slot has no living owner.
    enum class coverage : std::uint8_t { whole, broken };
    void serve(coverage now) { coverage_ = now; }

private:
    // What one member answers about a key.
    class view final : public membership {
    public:
        view(const cluster& all, std::string address) : all_(all), address_(std::move(address)) {}
        slot_standing standing_of(std::string_view key) const override;
        bool is_replica() const override { return !all_.members_.find(address_)->second.follows.empty(); }
        std::string shards() const override { return all_.shards_as_seen_by(address_); }

    private:
        const cluster& all_;
        std::string address_;
    };
    struct member {
        server* serves = nullptr;
        std::unique_ptr<view> sees{};
        std::string follows{};  // empty: a primary
    };
    struct slot_state {
        std::string owner;
        std::string target{};  // empty: the slot does not move
        std::string former{};  // not empty: the owner according to members that do not know of the last move
        bool arrived = false;  // the target knows that it owns the slot
    };

    member& add_member(server& fresh, std::string address);
    slot_state& state_of(unsigned slot);
    slot_state look(unsigned slot) const;
    const std::string& owner_as_seen_by(std::string_view address, const slot_state& state) const;
    std::string shards_as_seen_by(const std::string& address) const;

    slot_function slot_of_;
    std::map<std::string, member, std::less<>> members_;
    std::string first_;
    std::map<unsigned, slot_state> slots_;  // only slots that differ from the initial state
    coverage coverage_ = coverage::whole;
};

}  // namespace holdfast::sim
