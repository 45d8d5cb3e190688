// A minimal client, a socket and a few calls, for tests that look at bytes.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>
#include <system_error>

#include "support/sockets.hpp"

namespace holdfast::testing {

inline void send_all(const unique_fd& fd, std::string_view bytes) {
    const ssize_t sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(bytes.size())) throw_errno("send");
}

inline bool readable_within(const unique_fd& fd, std::chrono::milliseconds limit) {
    pollfd waiting{.fd = fd.get(), .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, static_cast<int>(limit.count())) == 1;
}

// Reads until `length` bytes are there or the peer closes.
inline std::string receive(const unique_fd& fd, std::size_t length) {
    std::string got;
    char byte;
    while (got.size() < length && readable_within(fd, std::chrono::seconds{10}) && ::recv(fd.get(), &byte, 1, 0) == 1)
        got += byte;
    return got;
}

inline bool closed_by_peer(const unique_fd& fd) {
    char byte;
    return readable_within(fd, std::chrono::seconds{10}) && ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

inline bool refused(int port) {
    try {
        connect_tcp(port);
        return false;
    } catch (const std::system_error& failure) {
        return failure.code() == std::errc::connection_refused;
    }
}

inline constexpr std::string_view ping = "*1\r\n$4\r\nPING\r\n";
inline constexpr std::string_view pong = "+PONG\r\n";

// Long enough for a reply in flight to arrive. A value that is too short makes a test weaker but never fail.
inline constexpr auto a_while = std::chrono::milliseconds{50};

}  // namespace holdfast::testing
