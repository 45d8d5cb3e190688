// The floor under every client: a blocking socket, one send, one recv, no more thought than that.
#pragma once

#include "support.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <system_error>

namespace holdfast::bench {

class bare_socket {
public:
    static bare_socket over_tcp(const server_place& server) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(server.port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        bare_socket made(AF_INET, address);
        const int on = 1;
        check(::setsockopt(made.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
        return made;
    }

    static bare_socket over_unix(const server_place& server) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (server.socket_path.size() >= sizeof address.sun_path) throw std::runtime_error("socket path too long");
        std::memcpy(address.sun_path, server.socket_path.data(), server.socket_path.size());
        return {AF_UNIX, address};
    }

    bare_socket(bare_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    bare_socket& operator=(bare_socket&&) = delete;
    ~bare_socket() {
        if (fd_ >= 0) ::close(fd_);
    }

    // Sends a command whose answer is one line, and returns that line with its type byte, without its end.
    std::string_view line(std::string_view encoded) {
        send(encoded);
        return received_lines();
    }

    // What the server sends, up to the end of a line: a small answer comes in one piece, however many lines it has.
    std::string_view received_lines() {
        std::size_t got = 0;
        do got += receive(got);
        while (buffer_[got - 1] != '\n');
        return {buffer_, got - 2};
    }

    void send(std::string_view bytes) {
        const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        check(sent, "send");
        if (static_cast<std::size_t>(sent) != bytes.size()) throw std::runtime_error("a send was cut short");
    }

    // Looks at the socket for so long before it blocks.
    void look_before_blocking(std::chrono::microseconds how_long) { look_for_ = how_long; }

    // Reads whatever comes; false if nothing did for as long as give_up_after() said.
    bool hears_something() {
        const auto got = ::recv(fd_, buffer_, sizeof buffer_, 0);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        check(got, "recv");
        return got > 0;
    }
    void give_up_after(std::chrono::milliseconds limit) {
        const timeval time{.tv_sec = limit.count() / 1000, .tv_usec = limit.count() % 1000 * 1000};
        check(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time), "SO_RCVTIMEO");
    }

    // The same for an answer that is one string.
    std::string bulk(std::string_view encoded) {
        send(encoded);
        std::string all;
        std::size_t wanted = 1;
        while (all.size() < wanted) {
            all.append(buffer_, receive(0));
            const std::size_t body = all.find('\n') + 1;
            if (body == 0) {
                wanted = all.size() + 1;
                continue;
            }
            std::size_t length = 0;
            std::from_chars(all.data() + 1, all.data() + body, length);
            wanted = body + length + 2;
        }
        return all;
    }

private:
    template <typename Address>
    bare_socket(int family, const Address& address) : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        check(fd_, "socket");
        check(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), "connect");
    }

    static void check(std::int64_t result, const char* what) {
        if (result < 0) throw std::system_error(errno, std::generic_category(), what);
    }

    std::size_t receive(std::size_t behind) {
        auto got = look(behind);
        if (got < 0) got = ::recv(fd_, buffer_ + behind, sizeof buffer_ - behind, 0);
        check(got, "recv");
        if (got == 0) throw std::runtime_error("the server hung up");
        return static_cast<std::size_t>(got);
    }

    // Less than 0: nothing came meanwhile.
    ssize_t look(std::size_t behind) {
        if (look_for_ <= std::chrono::microseconds(0)) return -1;
        const auto enough = std::chrono::steady_clock::now() + look_for_;
        do {
            const auto got = ::recv(fd_, buffer_ + behind, sizeof buffer_ - behind, MSG_DONTWAIT);
            if (got >= 0) return got;
            if (errno != EAGAIN && errno != EWOULDBLOCK) check(got, "recv");
        } while (std::chrono::steady_clock::now() < enough);
        return -1;
    }

    int fd_;
    std::chrono::microseconds look_for_{0};
    char buffer_[16384];
};

}  // namespace holdfast::bench
