// The socket calls that the harness needs, with exceptions and owning descriptors.
//
// Ports are below the kernel's range for outgoing connections, so that a server that is down for a moment finds its
// port free; and below 20000, so that the bus port of a Cluster member (port + 10000) is free, too.
#pragma once

#include <filesystem>
#include <string>

namespace holdfast::testing {

/// Owns a file descriptor.
class unique_fd {
public:
    unique_fd() = default;
    explicit unique_fd(int fd) noexcept : fd_{fd} {}
    ~unique_fd() { reset(); }
    unique_fd(unique_fd&& other) noexcept : fd_{other.release()} {}
    unique_fd& operator=(unique_fd&& other) noexcept;

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    int release() noexcept;
    void reset() noexcept;

private:
    int fd_ = -1;
};

/// Throws std::system_error with errno.
[[noreturn]] void throw_errno(const std::string& what);

/// A port of 127.0.0.1 that was free a moment ago. Another process may take it before the caller does.
int free_port();

/// A port of 127.0.0.1 and a socket bound to it, not listening yet: connections are refused.
struct reserved_port {
    int port;
    unique_fd socket;
};

/// Reserves a port until destruction.
reserved_port reserve_port();

/// Lets listen_beside() open listeners on the port, while other processes cannot bind it.
void allow_listeners_beside(const reserved_port& reserved);

/// Another, listening socket on the reserved port. When it closes, the port stays reserved and refuses connections.
unique_fd listen_beside(const reserved_port& reserved);

unique_fd listen_unix(const std::filesystem::path& path);

/// Connected to 127.0.0.1, blocking.
unique_fd connect_tcp(int port);

unique_fd connect_unix(const std::filesystem::path& path);

void set_nonblocking(const unique_fd& fd);

}  // namespace holdfast::testing
