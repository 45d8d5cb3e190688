// The address of a unix socket with an abstract name: on no disk, there as long as the socket is.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string_view>

namespace holdfast::cli {

// An abstract name begins with a zero byte. It is cut at the end if need be.
struct abstract_address {
    explicit abstract_address(std::string_view name) {
        unix_address.sun_family = AF_UNIX;
        const std::size_t count = name.copy(unix_address.sun_path + 1, sizeof unix_address.sun_path - 1);
        size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
    }
    const sockaddr* generic() const noexcept { return reinterpret_cast<const sockaddr*>(&unix_address); }

    sockaddr_un unix_address{};
    socklen_t size = 0;
};

}  // namespace holdfast::cli
