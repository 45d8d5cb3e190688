// Resolves a host name and connects a TCP socket to the first of its addresses that answers.
#pragma once

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace holdfast::net {

// Keep-alive finds a peer that vanished without a word even when our own health check is switched off.
inline void set_socket_options(boost::asio::ip::tcp::socket& socket) {
    boost::system::error_code ignored;
    socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
    socket.non_blocking(true, ignored);
}

// `Stream` gives then() and target(); `done(error_code)` is called once, unless the stream is closed before.
template <typename Stream, typename Done>
void connect_tcp(Stream& stream, boost::asio::ip::tcp::resolver& resolver, boost::asio::ip::tcp::socket& socket,
                 Done done) {
    resolver.async_resolve(
        stream.target().host, std::to_string(stream.target().port), boost::asio::ip::resolver_base::numeric_service,
        stream.then([&stream, &socket, done](const auto& unresolved, const auto& addresses) {
            if (unresolved) return done(unresolved);
            boost::asio::async_connect(socket, addresses, stream.then([&socket, done](const auto& code, const auto&) {
                if (!code) set_socket_options(socket);
                done(code);
            }));
        }));
}

}  // namespace holdfast::net
