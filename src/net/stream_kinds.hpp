// One factory per kind of stream. make_stream() chooses among them.
#pragma once

#include "net/stream.hpp"

namespace holdfast::net {

std::shared_ptr<stream> make_tcp_stream(boost::asio::io_context& context, serial_section& section,
                                        const endpoint& target, stream_listener& listener);
std::shared_ptr<stream> make_unix_stream(boost::asio::io_context& context, serial_section& section,
                                         const endpoint& target, stream_listener& listener);
std::shared_ptr<stream> make_tls_stream(boost::asio::io_context& context, serial_section& section,
                                        const endpoint& target, stream_listener& listener);

// Throws holdfast::error in a build without OpenSSL. `who` is the server.
void require_tls(const std::string& who);

// What an error of a stream means to TLS.
enum class tls_trouble { none, closed, failed };
tls_trouble tls_trouble_of(const boost::system::error_code& code);

}  // namespace holdfast::net
