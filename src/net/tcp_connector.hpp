// Resolves a host name and connects a TCP socket to its first address that answers.
#pragma once

#include "net/close_on_exec.hpp"
#include "net/endpoint.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <string>
#include <utility>

namespace holdfast::net {

using boost::asio::ip::tcp;

// Keep-alive detects a peer that vanished silently, even if the health check of the session is off.
inline void set_socket_options(tcp::socket& socket) {
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
    socket.non_blocking(true, ignored);
}

// Tries one address after the other. `done` gets the error of the last one.
template <typename Stream, typename Done>
void connect_to_next(Stream& stream, tcp::socket& socket, tcp::resolver::results_type addresses,
                     tcp::resolver::results_type::iterator next, Done done) {
    const tcp::endpoint address = *next;
    boost::system::error_code failed;
    socket.close(failed);
    open_close_on_exec(socket, address.protocol(), failed);
    if (failed) {  // e.g. an address family that this machine lacks
        if (++next != addresses.end()) return connect_to_next(stream, socket, std::move(addresses), next, done);
        return boost::asio::post(socket.get_executor(), stream.then([done, failed]() mutable { done(failed); }));
    }
    socket.async_connect(address, stream.then([&stream, &socket, addresses, next, done](const auto& code) mutable {
        if (!code) set_socket_options(socket);
        if (!code || ++next == addresses.end()) return done(code);
        connect_to_next(stream, socket, std::move(addresses), next, done);
    }));
}

// `Stream` has then() and target(). `done(error_code)` is called once, unless the stream is closed before, and never
// within this call. Asio resolves the names of all streams of a client one after the other, so a slow name delays the
// others. An address needs no resolver.
template <typename Stream, typename Resolver, typename Done>
void connect_tcp(Stream& stream, Resolver& resolver, tcp::socket& socket, Done done) {
    const endpoint& target = stream.target();
    boost::system::error_code is_name;
    const auto address = boost::asio::ip::make_address(target.host, is_name);
    if (!is_name) {
        const auto only = tcp::resolver::results_type::create(tcp::endpoint(address, target.port), target.host,
                                                              std::to_string(target.port));
        return connect_to_next(stream, socket, only, only.begin(), done);
    }
    resolver.async_resolve(
        target.host, std::to_string(target.port), boost::asio::ip::resolver_base::numeric_service,
        stream.then([&stream, &socket, done](const auto& unresolved, const tcp::resolver::results_type& addresses) {
            if (unresolved) return done(unresolved);
            connect_to_next(stream, socket, addresses, addresses.begin(), done);
        }));
}

}  // namespace holdfast::net
