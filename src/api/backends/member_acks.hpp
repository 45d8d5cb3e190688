// The separate links over which members of a Cluster are asked for acknowledgements of replicas; see redis::ack_queue.
//
// The question goes to the member that owns the lock's slot by the present map, which need not be the member that
// granted the lock. So it first checks that the grant is there. The answer does not count if it is not, or if that
// member is not the owner.
//
// The links of a member are opened on first use and closed when it is no primary any more. Lives in the client's serial
// section.
#pragma once

#include "api/backends/ack_links.hpp"
#include "redis/cluster/slot_map.hpp"

#include <map>
#include <memory>
#include <vector>

namespace holdfast::api {

class member_acks final : private ack_listener {
public:
    // `jitter_seed` spreads the reconnects of many clients.
    member_acks(boost::asio::io_context& context, serial_section& section, const redis::server_settings& cluster,
                std::uint64_t jitter_seed);
    ~member_acks();

    // `at`: the owner of the slot; null: unknown.
    void submit(redis::command& request, const redis::server_address* at, redis::acknowledgement wanted);
    bool withdraw(redis::command& request);
    // Requests to members that are no primaries in this map end with an unknown outcome.
    void keep_primaries(const redis::slot_map& map, instant now);
    void flush(instant now);
    void pump(instant now);
    void close(instant now);
    void on_timer(instant now);
    instant deadline() const noexcept;

private:
    // A link may lead to any server that answers there: the scripts check what it knows.
    void on_ack_link_up(const redis::server_facts&, instant) override {}

    boost::asio::io_context& context_;
    serial_section& section_;
    const redis::server_settings& cluster_;
    std::uint64_t next_seed_;
    std::map<redis::server_address, std::unique_ptr<ack_links>> members_;
    std::vector<std::unique_ptr<ack_links>> left_;  // freed when they are quiet
    std::vector<redis::command*> nowhere_;          // no owner is known
};

}  // namespace holdfast::api
