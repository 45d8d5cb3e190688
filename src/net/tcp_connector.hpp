// Resolves a host name and connects a TCP socket to the first of its addresses that answers.
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
        if (++next != addresses.end()) return connect_to_next(stream, socket, std::move(addresses), next, done);
        return boost::asio::post(socket.get_executor(), stream.then([done, failed]() mutable { done(failed); }));
    }
    socket.async_connect(address, stream.then([&stream, &socket, addresses, next, done](const auto& code) mutable {
        if (!code) set_socket_options(socket);
        if (!code || ++next == addresses.end()) return done(code);
        connect_to_next(stream, socket, std::move(addresses), next, done);
    }));
}

// `Stream` gives then() and target(); `done(error_code)` is called once, unless the stream is closed before, and never
// from within. Names of all streams of a client are resolved one after the other, and one that takes long holds the
// others up. An address does not stand in that line.
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
