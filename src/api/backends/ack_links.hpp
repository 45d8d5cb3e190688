// The links of their own by which a node asks for replicas: see redis::ack_queue. Made when somebody first wants them.
//
// A WAIT holds up what is sent behind it for as long as its replicas may take. So whoever wants another number, or
// gives them another time, has another link: a lock whose replicas are slow or gone costs none of the others. There are
// few such wishes in a program; those beyond the last link share.
//
// Each link goes where the node's own goes. Where both are up and lead to different servers, the one that came up
// earlier is the wrong one: the address leads elsewhere by now. With members of a Cluster that does not matter.
#pragma once

#include "redis/session/ack_queue.hpp"
#include "redis/session/connection.hpp"

#include <memory>
#include <string>
#include <vector>

namespace holdfast::api {

// Told in the serial section.
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

    // `server`: where the node's own link goes.
    void submit(redis::command& request, const redis::ack_queue::question& about, const redis::server_settings& server,
                const std::string& client_id);
    bool withdraw(redis::command& request);
    // The node's own link is up, and goes there, to that run of a server.
    void follow(const redis::server_settings& server, const std::string& run_id, instant now);
    // See redis::ack_queue; of all links together.
    unsigned lost_histories() const noexcept;
    void flush(instant now);
    void pump(instant now);
    void close(instant now);
    // Whoever waits is told that reason, and the links are left. To be kept until they are quiet.
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
