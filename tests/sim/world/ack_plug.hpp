// A client's links for acknowledgements of replicas (WAIT). They stand for src/api/backends/ack_links.cpp and
// member_acks.cpp. All locks of a scenario require the same number of replicas, so one link per server is enough.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "redis/session/ack_queue.hpp"
#include "redis/slots/slot_map.hpp"
#include "world/plug.hpp"

namespace holdfast::sim {

/// Links to a server or to a member of a Cluster, as the settings say. The results of its commands tell the fate of the
/// link.
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

/// One link to each primary of a Cluster that was asked.
class member_ack_plugs {
public:
    member_ack_plugs(client& owner, const redis::server_settings& cluster, network& net)
        : owner_(owner), cluster_(cluster), net_(net) {}

    /// `at` is null if the owner of the slot is unknown.
    void submit(redis::command& request, const redis::server_address* at, redis::acknowledgement wanted);
    bool withdraw(redis::command& request);
    /// Drops the links to members that are no primaries.
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
    // Kept because the network may still deliver to them; they ignore it.
    std::vector<std::unique_ptr<ack_plug>> left_;
    std::vector<redis::command*> nowhere_;  // the owner of the slot is unknown
};

}  // namespace holdfast::sim
