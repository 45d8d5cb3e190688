// A client's links by which servers are asked for their replicas. What src/api/backends/ack_links.cpp and
// member_acks.cpp are in a program; here all want the same number of replicas, so one link to each server will do.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "redis/cluster/slot_map.hpp"
#include "redis/session/ack_queue.hpp"
#include "world/plug.hpp"

namespace holdfast::sim {

/// To a server, or to a member of a Cluster, as its settings say. What becomes of its link is told by its commands.
class ack_plug final : private redis::session_listener, public plug {
public:
    ack_plug(client& owner, std::size_t server_number, const redis::server_settings& server, network& net);

    redis::ack_queue queue;

private:
    void on_link_up(const redis::server_facts&, instant) override {}
    void on_link_down(const failure&, instant) override {}
    void on_subscription_refused(const failure&, instant) override {}
    void on_push(const redis::reply_view&, instant) override {}
};

/// One to each primary of a Cluster that was asked.
class member_ack_plugs {
public:
    member_ack_plugs(client& owner, const redis::server_settings& cluster, network& net)
        : owner_(owner), cluster_(cluster), net_(net) {}

    /// Null: nobody is known to own the slot.
    void submit(redis::command& request, const redis::server_address* at, redis::acknowledgement wanted);
    bool withdraw(redis::command& request);
    /// The links to others are left.
    void keep_primaries(const redis::slot_map& map);
    void flush();
    void settle();
    void on_timer();
    instant deadline() const;
    void forget_links();
    void close();
    void add_to(std::vector<plug*>& all) const;

private:
    client& owner_;
    const redis::server_settings cluster_;
    network& net_;
    std::map<redis::server_address, std::unique_ptr<ack_plug>> members_;
    // The network may still have something for them; they take it no more.
    std::vector<std::unique_ptr<ack_plug>> left_;
    std::vector<redis::command*> nowhere_;  // there is nobody to ask
};

}  // namespace holdfast::sim
