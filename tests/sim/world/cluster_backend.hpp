// A Cluster as a backend: the real router and a plug for each link that the router opens. Stands for
// src/api/backends/cluster_backend.cpp.
#pragma once

#include <memory>
#include <vector>

#include "engine/cluster_node.hpp"
#include "world/ack_plug.hpp"
#include "world/backend.hpp"

namespace holdfast::sim {

/// The address of the member with that index among the scenario's servers, and the reverse.
redis::server_address address_of_member(std::size_t number);
std::size_t member_at(const redis::server_address& address);

class cluster_backend final : public backend, private engine::cluster_host {
public:
    cluster_backend(client& owner, const redis::server_settings& cluster, std::uint64_t jitter_seed, network& net);

    engine::node_link link() override;
    void attach(engine::node_input& mine) override { node_.attach(mine); }
    /// Handles new slot maps. The settle() that follows sends what results from them.
    void catch_up() override;
    void settle() override;
    void on_timer() override;
    instant deadline() override;
    void forget_links() override;
    void close() override;
    bool all_up() const override;
    bool reaches(const wire::lock_keys& lock) const override { return node_.link_is_up(lock); }
    std::vector<plug*> plugs() override;

private:
    struct member_plug final : public plug {
        using plug::plug;
    };

    redis::session& open(const redis::server_settings& member, redis::session_listener& told) override;
    void close(redis::session& link) override;
    instant now() const override;
    void on_member_up(const redis::server_address& which, const redis::server_facts& facts) override;
    void on_member_down(const failure& why) override;
    void on_map() override { has_new_map_ = true; }
    void confirm(redis::command& request, const redis::server_address* at, redis::acknowledgement wanted) override;
    bool withdraw_confirmation(redis::command& request) override { return acks_.withdraw(request); }
    void note_mistrust();

    client& owner_;
    network& net_;
    std::uint64_t next_seed_;
    bool started_ = false;
    bool has_new_map_ = false;
    engine::cluster_node node_;
    member_ack_plugs acks_;
    std::vector<std::unique_ptr<member_plug>> links_;
    // Kept because the network may still deliver to them; they ignore it.
    std::vector<std::unique_ptr<member_plug>> closed_;
};

}  // namespace holdfast::sim
