// Resolves a host name and connects a TCP socket to the first of its addresses that answers.
#pragma once

#include "net/endpoint.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <utility>

namespace holdfast::net {

// Keep-alive finds a peer that vanished without a word even when our own health check is switched off.
inline void set_socket_options(boost::asio::ip::tcp::socket& socket) {
    boost::system::error_code ignored;
    socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
    socket.non_blocking(true, ignored);
}

class tcp_connector {
public:
    explicit tcp_connector(boost::asio::io_context& context) : resolver_(context) {}

    // Calls `done(error_code)` once. The owner keeps `socket` and this object alive until then.
    template <typename Done>
    void connect(boost::asio::ip::tcp::socket& socket, const endpoint& target, Done done) {
        resolver_.async_resolve(
            target.host, std::to_string(target.port), boost::asio::ip::resolver_base::numeric_service,
            [this, &socket, done = std::move(done)](const auto& failed, const auto& addresses) mutable {
                if (failed) return done(failed);
                boost::asio::async_connect(socket, addresses,
                                           [&socket, done = std::move(done)](const auto& code, const auto&) mutable {
                                               if (!code) set_socket_options(socket);
                                               done(code);
                                           });
            });
    }

    void cancel() { resolver_.cancel(); }

private:
    boost::asio::ip::tcp::resolver resolver_;
};

}  // namespace holdfast::net
