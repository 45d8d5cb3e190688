// The links of their own by which the members of a Cluster are asked for their replicas: see redis::ack_queue.
//
// A lock is asked for at the member that owns its slot by the present map. That need not be the one that granted it:
// what is asked there begins with a look whether the grant is there, and nothing counts if it is not, or if that member
// is not the owner.
//
// Made when a member is first asked, and left when it is no primary any more: so there are few for each primary. Lives
// in the client's serial section.
#pragma once

#include "api/backends/ack_links.hpp"
#include "redis/cluster/slot_map.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::api {

class member_acks final : private ack_listener {
public:
    // `jitter_seed` spreads the reconnects of many clients.
    member_acks(boost::asio::io_context& context, serial_section& section, const redis::server_settings& cluster,
                std::uint64_t jitter_seed);
    ~member_acks();

    // `at` is null if nobody is known to own the slot.
    void submit(redis::command& request, const redis::server_address* at, redis::acknowledgement wanted);
    bool withdraw(redis::command& request);
    // Whoever waits for one that is no primary by this map has an unknown outcome.
    void keep_primaries(const redis::slot_map& map, instant now);
    void flush(instant now);
    void pump(instant now);
    void close(instant now);
    void on_timer(instant now);
    instant deadline() const noexcept;

private:
    // A link leads to whatever answers there: the scripts show what that has.
    void on_ack_link_up(const redis::server_facts&, instant) override {}

    boost::asio::io_context& context_;
    serial_section& section_;
    const redis::server_settings& cluster_;
    std::uint64_t next_seed_;
    std::map<redis::server_address, std::unique_ptr<ack_links>> members_;
    std::vector<std::unique_ptr<ack_links>> left_;  // freed when they are quiet
    std::vector<redis::command*> nowhere_;          // there is nobody to ask
};

}  // namespace holdfast::api
