// A Cluster of simulated servers: which of them has which slot, and slots that move from one to another.
//
// Everything is known to all members at once; what a client has not heard of yet is its own affair. A move has the
// steps that a real one has: it begins, keys go over one by one, and it ends or is called off. An expiry goes over as
// what is left of it, so by another clock it is another moment. When a slot has gone, its old owner tells those who
// listened on its channels that they do so no more.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "node/slot_guard.hpp"
#include "world/server.hpp"

namespace holdfast::sim {

class cluster {
public:
    /// Says which slot a key is in.
    using slot_function = std::function<unsigned(std::string_view)>;

    explicit cluster(slot_function slot_of) : slot_of_(std::move(slot_of)) {}

    /// A member, known to the others by this place (host:port). The first has all slots. It outlives the cluster.
    void add(server& fresh, std::string place);

    const std::string& owner(unsigned slot) const;

    void begin_move(unsigned slot, std::string_view to);
    /// One key of the slot. The one that has it must be a part of the move.
    void move_key(const std::string& key);
    /// The slot is the other's from now on, with whatever keys have gone over; the rest is lost, as on a real one.
    void finish_move(unsigned slot);
    /// It stays where it is. What has gone over must have been moved back before.
    void call_off_move(unsigned slot);

private:
    // What one member says of a key.
    class view final : public slot_guard {
    public:
        view(const cluster& all, std::string place) : all_(all), place_(std::move(place)) {}
        slot_standing standing_of(std::string_view key) const override;

    private:
        const cluster& all_;
        std::string place_;
    };
    struct member {
        server* serves = nullptr;
        std::unique_ptr<view> sees;
    };
    struct slot_state {
        std::string owner;
        std::string taker;  // empty: it does not move
    };

    server& at(std::string_view place) const;
    slot_state& state_of(unsigned slot);
    slot_state look(unsigned slot) const;

    slot_function slot_of_;
    std::map<std::string, member, std::less<>> members_;
    std::string first_;
    std::map<unsigned, slot_state> slots_;  // those that are not as they were at first
};

}  // namespace holdfast::sim
