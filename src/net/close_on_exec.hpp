// Sockets that child programs do not inherit.
//
// Asio opens sockets without SOCK_CLOEXEC. If the flag were set afterwards, another thread could fork and exec in
// between. A child that inherits a link keeps it open after its parent has died.
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
