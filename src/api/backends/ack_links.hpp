// The separate links over which a backend asks for acknowledgements of replicas; see redis::ack_queue. Opened on first
// use.
//
// A WAIT delays the commands behind it for as long as its replicas may take. So each pair of number and timeout has a
// link of its own: a lock whose replicas are slow or gone does not delay the others. A program uses few such pairs;
// those beyond the last link share it.
//
// Each link follows the backend's own link. If both are up and lead to different servers, the link that came up earlier
// is wrong: the address leads elsewhere by now. For members of a Cluster that does not matter.
#pragma once

#include "redis/session/ack_queue.hpp"
#include "redis/session/connection.hpp"
#include "redis/slots/slot_map.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::api {

// Called in the serial section.
class ack_listener {
public:
    virtual void on_ack_link_up(const redis::server_facts& facts, instant now) = 0;

protected:
    ~ack_listener() = default;
};

class ack_links {
public:
    // `jitter_seed` spreads the reconnects of many clients.
    ack_links(boost::asio::io_context& context, serial_section& section, ack_listener& told, std::uint64_t jitter_seed);
    ~ack_links();

    // `server`: where the backend's own link leads.
    void submit(redis::command& request, const redis::ack_queue::question& about, const redis::server_settings& server,
                const std::string& client_id);
    bool withdraw(redis::command& request);
    // The backend's own link is up and leads to `server`, to the run `run_id` of it.
    void follow(const redis::server_settings& server, const std::string& run_id, instant now);
    // The sum over all links; see redis::ack_queue.
    unsigned lost_histories() const noexcept;
    void flush(instant now);
    void pump(instant now);
    void close(instant now);
    // Fails all requests with that reason and closes the links. Keep the object until it is quiet.
    void give_up(const failure& why, instant now);
    bool is_quiet() const noexcept;
    void on_timer(instant now);
    instant deadline() const noexcept;

private:
    struct one;

    boost::asio::io_context& context_;
    serial_section& section_;
    ack_listener& told_;
    const std::uint64_t jitter_seed_;
    std::vector<std::unique_ptr<one>> links_;
};

// The same for the members of a Cluster. The links of a member are opened on first use and closed when it is no primary
// any more.
//
// A question goes to the member that owns the lock's slot by the present map, which need not be the member that granted
// the lock. So it first checks that the grant is there. The answer does not count if it is not, or if that member is
// not the owner.
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
