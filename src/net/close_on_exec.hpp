// Sockets that a program started by ours does not inherit.
//
// Asio opens them without SOCK_CLOEXEC, and setting the flag afterwards leaves a gap in which another thread
// may fork and exec. A child that inherits the link of a lock keeps it open after its parent died.
#pragma once

#include <sys/socket.h>
#include <boost/system/error_code.hpp>
#include <cerrno>

namespace holdfast::net {

template <typename Socket>
void open_close_on_exec(Socket& socket, const typename Socket::protocol_type& protocol,
                        boost::system::error_code& failed) {
    const int fd = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
    if (fd < 0) {
        failed.assign(errno, boost::system::system_category());
        return;
    }
    socket.assign(protocol, fd, failed);
}

}  // namespace holdfast::net
