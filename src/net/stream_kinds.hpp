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

}  // namespace holdfast::net
