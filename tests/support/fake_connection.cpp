#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "support/fake_server.hpp"

namespace holdfast::testing {
namespace {

// The number after a one-letter type, as in "*3" or "$5".
std::optional<std::size_t> counted(const std::optional<std::string>& line, char type) {
    if (!line || line->empty() || line->front() != type) return std::nullopt;
    std::size_t number = 0;
    const char* const end = line->data() + line->size();
    const auto [stopped, error] = std::from_chars(line->data() + 1, end, number);
    if (error != std::errc{} || stopped != end) return std::nullopt;
    return number;
}

}  // namespace

fake_connection::fake_connection(unique_fd socket, const stop_event& stopping, int number)
    : socket_{std::move(socket)}, stopping_{stopping}, number_{number} {
    set_nonblocking(socket_);
}

bool fake_connection::fill() {
    char bytes[4096];
    while (socket_ && stopping_.wait_for(socket_.get(), POLLIN)) {
        const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
        if (got > 0) {
            buffer_.append(bytes, static_cast<std::size_t>(got));
            return true;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    }
    return false;
}

std::string fake_connection::read_some() {
    if (buffer_.empty()) fill();
    return std::exchange(buffer_, {});
}

std::optional<std::string> fake_connection::read_line() {
    std::size_t end;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
        if (!fill()) return std::nullopt;
    }
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return line;
}

std::optional<std::string> fake_connection::read_exactly(std::size_t length) {
    while (buffer_.size() < length) {
        if (!fill()) return std::nullopt;
    }
    std::string bytes = buffer_.substr(0, length);
    buffer_.erase(0, length);
    return bytes;
}

std::optional<std::vector<std::string>> fake_connection::read_command() {
    const std::optional<std::size_t> count = counted(read_line(), '*');
    if (!count) return std::nullopt;
    std::vector<std::string> words;
    while (words.size() < *count) {
        const std::optional<std::size_t> length = counted(read_line(), '$');
        if (!length) return std::nullopt;
        std::optional<std::string> word = read_exactly(*length + 2);
        if (!word || !word->ends_with("\r\n")) return std::nullopt;
        word->resize(*length);
        words.push_back(std::move(*word));
    }
    return words;
}

bool fake_connection::write(std::string_view bytes) {
    while (!bytes.empty()) {
        if (!socket_ || !stopping_.wait_for(socket_.get(), POLLOUT)) return false;
        const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno != EAGAIN && errno != EINTR) {
            return false;
        }
    }
    return true;
}

void fake_connection::close() noexcept {
    socket_.reset();
}

void fake_connection::reset() noexcept {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    if (socket_) ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket_.reset();
}

void fake_connection::ignore_the_rest() {
    do {
        buffer_.clear();
    } while (fill());
}

}  // namespace holdfast::testing
