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

}  // namespace holdfast::api
