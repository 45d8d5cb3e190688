// The link of its own by which a node asks for replicas: see redis::ack_line. Made when somebody first wants them.
#pragma once

#include "redis/ack_line.hpp"
#include "redis/connection.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>
#include <string>

namespace holdfast::api {

class ack_link {
public:
    // `server`: where the node's own link goes. `jitter_seed` spreads the reconnects of many clients.
    ack_link(boost::asio::io_context& context, serial_section& section, redis::server_settings server,
             std::string client_id, std::uint64_t jitter_seed);

    // The node's own link goes there now.
    void follow(const redis::server_settings& server, instant now);

    redis::ack_line& line() noexcept { return line_; }
    void pump(instant now) { connection_.pump(now); }
    void close(instant now) { connection_.close(now); }
    void on_timer(instant now) { connection_.session().on_timer(now); }
    instant deadline() const noexcept { return connection_.session().deadline(); }

private:
    // What becomes of the link is told by its commands.
    class quiet_listener final : public redis::session_listener {
        void on_link_up(const redis::server_facts&, instant) override {}
        void on_link_down(const failure&, instant) override {}
        void on_subscription_refused(const failure&, instant) override {}
        void on_push(const redis::reply_view&, instant) override {}
    };

    quiet_listener nobody_;
    redis::connection connection_;
    redis::ack_line line_;
};

}  // namespace holdfast::api
