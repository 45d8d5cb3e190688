#include "support/sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace holdfast::testing {
namespace {

constexpr int first_port = 10000;
constexpr int last_port = 19999;

sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

sockaddr_un unix_address(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string text = path.string();
    if (text.size() >= sizeof address.sun_path) throw std::length_error{"unix socket path too long: " + text};
    std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
    return address;
}

unique_fd open_socket(int family) {
    unique_fd fd{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (!fd) throw_errno("socket");
    return fd;
}

template <typename Address>
const sockaddr* generic(const Address& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

void set_option(const unique_fd& fd, int option) {
    const int on = 1;
    if (::setsockopt(fd.get(), SOL_SOCKET, option, &on, sizeof on) != 0) throw_errno("setsockopt");
}

// False if the port is in use.
bool bind_loopback(const unique_fd& fd, int port) {
    const sockaddr_in address = loopback(port);
    if (::bind(fd.get(), generic(address), sizeof address) == 0) return true;
    if (errno != EADDRINUSE) throw_errno("bind 127.0.0.1:" + std::to_string(port));
    return false;
}

// With the options that redis-server uses.
bool port_is_free(int port) {
    const unique_fd fd = open_socket(AF_INET);
    set_option(fd, SO_REUSEADDR);
    return bind_loopback(fd, port);
}

// Random, because tests run side by side and would otherwise all try the same port.
template <typename Attempt>
int first_port_where(Attempt&& works) {
    std::random_device device;
    std::uniform_int_distribution<int> any{first_port, last_port};
    for (int attempt = 0; attempt < 1000; ++attempt) {
        const int port = any(device);
        if (works(port)) return port;
    }
    throw std::runtime_error{"no free port on 127.0.0.1"};
}

}  // namespace

unique_fd& unique_fd::operator=(unique_fd&& other) noexcept {
    if (this != &other) {
        reset();
        fd_ = other.release();
    }
    return *this;
}

int unique_fd::release() noexcept {
    return std::exchange(fd_, -1);
}

void unique_fd::reset() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void throw_errno(const std::string& what) {
    throw std::system_error{errno, std::generic_category(), what};
}

int free_port() {
    return first_port_where(&port_is_free);
}

reserved_port reserve_port() {
    reserved_port made{};
    // Without SO_REUSEADDR: a redis-server that looks for a port (with it) cannot bind even while nothing listens here.
    made.port = first_port_where([&](int port) {
        made.socket = open_socket(AF_INET);
        return bind_loopback(made.socket, port);
    });
    return made;
}

// SO_REUSEPORT only after the bind: otherwise two tests could reserve the same port.
void allow_listeners_beside(const reserved_port& reserved) {
    set_option(reserved.socket, SO_REUSEPORT);
}

unique_fd listen_beside(const reserved_port& reserved) {
    unique_fd fd = open_socket(AF_INET);
    set_option(fd, SO_REUSEPORT);
    if (!bind_loopback(fd, reserved.port) || ::listen(fd.get(), SOMAXCONN) != 0) {
        throw_errno("listen 127.0.0.1:" + std::to_string(reserved.port));
    }
    return fd;
}

unique_fd listen_unix(const std::filesystem::path& path) {
    unique_fd fd = open_socket(AF_UNIX);
    const sockaddr_un address = unix_address(path);
    if (::bind(fd.get(), generic(address), sizeof address) != 0) throw_errno("bind " + path.string());
    if (::listen(fd.get(), SOMAXCONN) != 0) throw_errno("listen " + path.string());
    return fd;
}

unique_fd connect_tcp(int port) {
    unique_fd fd = open_socket(AF_INET);
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const sockaddr_in address = loopback(port);
    if (::connect(fd.get(), generic(address), sizeof address) != 0) {
        throw_errno("connect 127.0.0.1:" + std::to_string(port));
    }
    return fd;
}

unique_fd connect_unix(const std::filesystem::path& path) {
    unique_fd fd = open_socket(AF_UNIX);
    const sockaddr_un address = unix_address(path);
    if (::connect(fd.get(), generic(address), sizeof address) != 0) throw_errno("connect " + path.string());
    return fd;
}

void set_nonblocking(const unique_fd& fd) {
    const int flags = ::fcntl(fd.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) throw_errno("fcntl");
}

}  // namespace holdfast::testing
