#include "api/ack_link.hpp"

#include <utility>

namespace holdfast::api {
namespace {

// The sentinels are the node's to ask: this link goes where that one does.
redis::server_settings alone(redis::server_settings server) {
    server.sentinels.reset();
    return server;
}

}  // namespace

ack_link::ack_link(boost::asio::io_context& context, serial_section& section, redis::server_settings server,
                   std::string client_id, std::uint64_t jitter_seed)
    : connection_(context, section, alone(std::move(server)), nobody_, jitter_seed),
      line_(connection_.session(), std::move(client_id)) {}

void ack_link::follow(const redis::server_settings& server, instant now) {
    connection_.session().found({server.host, server.port}, now);
}

}  // namespace holdfast::api
