// A Cluster of simulated servers: which of them has which slot, and slots that move from one to another.
//
// A move has the steps that a real one has: it begins, keys go over one by one, and it ends or is called off. An expiry
// goes over as what is left of it, so by another clock it is another moment. The new owner is told of its end first;
// from then on it serves the slot, though the old one still sends clients there by ASK only. When the slot has gone,
// its old owner tells those who listened on its channels that they do so no more. The other members may learn of it
// later still: until then they send everybody to the old owner, and show a map that is as old.
//
// Replicas take over from a primary, with its slots. All know of that at once. Not modelled: that a replica lets
// clients listen on the channels of its primary.
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
    /// Says which slot a key is in.
    using slot_function = std::function<unsigned(std::string_view)>;

    explicit cluster(slot_function slot_of) : slot_of_(std::move(slot_of)) {}

    /// A primary, known to the others by this address (host:port). The first has all slots. It outlives the cluster.
    void add(server& fresh, std::string address);
    /// One that follows a primary.
    void add_replica(server& fresh, std::string address, std::string_view of);

    const std::string& owner(unsigned slot) const;
    bool is_moving(unsigned slot) const { return !look(slot).target.empty(); }
    /// The server that has the key, or would take it.
    server& server_of(const std::string& key) const;
    std::vector<std::string> primaries() const;
    std::vector<std::string> replicas() const;
    server& at(std::string_view address) const;

    /// A slot is that primary's, as if it had always been.
    void assign(unsigned slot, std::string_view to);

    void begin_move(unsigned slot, std::string_view to);
    /// One key of the slot. The one that has it must be a part of the move.
    void move_key(const std::string& key);
    /// The new owner knows that it is one.
    void arrive(unsigned slot);
    /// The slot is the other's from now on, with whatever keys have gone over; the rest is lost, as on a real one.
    void finish_move(unsigned slot);
    /// Those who had no part in it have heard of the move.
    void propagate(unsigned slot);
    /// It stays where it is. What has gone over must have been moved back before.
    void cancel_move(unsigned slot);

    /// The replica leads, with all slots of that primary, who follows it. Moves that either of them has a part in are
    /// forgotten.
    void promote(std::string_view replica, std::string_view instead_of);

    /// Broken: every member refuses everything, because some slot has no living owner.
    enum class coverage : std::uint8_t { whole, broken };
    void serve(coverage now) { coverage_ = now; }

private:
    // What one member says of a key.
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
        std::string target{};  // empty: it does not move
        std::string former{};  // not empty: whom those take for the owner who have not heard of the last move
        bool arrived = false;  // the target knows that the slot is its own
    };

    member& add_member(server& fresh, std::string address);
    slot_state& state_of(unsigned slot);
    slot_state look(unsigned slot) const;
    const std::string& owner_as_seen_by(std::string_view address, const slot_state& state) const;
    std::string shards_as_seen_by(const std::string& address) const;

    slot_function slot_of_;
    std::map<std::string, member, std::less<>> members_;
    std::string first_;
    std::map<unsigned, slot_state> slots_;  // those that are not as they were at first
    coverage coverage_ = coverage::whole;
};

}  // namespace holdfast::sim
