// Resolves a host name and connects a TCP socket to the first of its addresses that answers.
#pragma once

#include "net/close_on_exec.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <utility>

namespace holdfast::net {

using boost::asio::ip::tcp;

// Keep-alive finds a peer that vanished without a word even when our own health check is switched off.
inline void set_socket_options(tcp::socket& socket) {
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
    socket.non_blocking(true, ignored);
}

// Tries one address after the other. `done` hears the error of the last one.
template <typename Stream, typename Done>
void connect_to_next(Stream& stream, tcp::socket& socket, tcp::resolver::results_type addresses,
                     tcp::resolver::results_type::iterator next, Done done) {
    const tcp::endpoint address = *next;
    boost::system::error_code failed;
    socket.close(failed);
    open_close_on_exec(socket, address.protocol(), failed);
    if (failed) {  // e.g. an address family that this machine does not have
        if (++next == addresses.end()) return done(failed);
        return connect_to_next(stream, socket, std::move(addresses), next, done);
    }
    socket.async_connect(address, stream.then([&stream, &socket, addresses, next, done](const auto& code) mutable {
        if (!code) set_socket_options(socket);
        if (!code || ++next == addresses.end()) return done(code);
        connect_to_next(stream, socket, std::move(addresses), next, done);
    }));
}

// `Stream` gives then() and target(); `done(error_code)` is called once, unless the stream is closed before.
template <typename Stream, typename Done>
void connect_tcp(Stream& stream, tcp::resolver& resolver, tcp::socket& socket, Done done) {
    resolver.async_resolve(
        stream.target().host, std::to_string(stream.target().port), boost::asio::ip::resolver_base::numeric_service,
        stream.then([&stream, &socket, done](const auto& unresolved, const tcp::resolver::results_type& addresses) {
            if (unresolved) return done(unresolved);
            connect_to_next(stream, socket, addresses, addresses.begin(), done);
        }));
}

}  // namespace holdfast::net
