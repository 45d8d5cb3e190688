// The few socket calls that the harness needs, with errors as exceptions and descriptors that close themselves.
//
// Ports are taken from below the range that the kernel hands to outgoing connections, so that a server which
// is down for a moment finds its port still free when it comes back; and below 20000, so that a Cluster
// node's bus port (port + 10000) is nobody else's port either.
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

/// A port of 127.0.0.1 that nobody listened on a moment ago. Somebody may take it before the caller does.
int free_port();

/// A port of 127.0.0.1 and a socket bound to it, not listening yet: connections are refused.
struct reserved_port {
    int port;
    unique_fd socket;
};

/// A port that is ours alone from now on.
reserved_port reserve_port();

/// Lets listen_beside() open listeners on the port, while anybody else is still kept out.
void allow_listeners_beside(const reserved_port& reserved);

/// Another socket on the reserved port, listening. Closed, it leaves the port reserved and refusing.
unique_fd listen_beside(const reserved_port& reserved);

unique_fd listen_unix(const std::filesystem::path& path);

/// Connected to 127.0.0.1, blocking.
unique_fd connect_tcp(int port);

unique_fd connect_unix(const std::filesystem::path& path);

void set_nonblocking(const unique_fd& fd);

}  // namespace holdfast::testing
