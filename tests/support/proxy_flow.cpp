#include "support/proxy_flow.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace holdfast::testing {
namespace {

// Like a real link: what does not fit waits at the sender.
constexpr std::size_t most_queued = 1 << 20;

bool try_again() noexcept {
    return errno == EAGAIN || errno == EINTR || errno == EINPROGRESS;
}

}  // namespace

bool proxy_flow::wants_to_read() const noexcept {
    return !ended_ && queued_ < most_queued;
}

bool proxy_flow::wants_to_write(clock::time_point now) const noexcept {
    return !chunks_.empty() && chunks_.front().due <= now;
}

std::optional<proxy_flow::clock::time_point> proxy_flow::due() const noexcept {
    if (chunks_.empty()) return std::nullopt;
    return chunks_.front().due;
}

bool proxy_flow::read(clock::time_point due) {
    char bytes[16384];
    const ssize_t got = ::recv(source_, bytes, sizeof bytes, 0);
    if (got < 0) return try_again();
    // A shorter delay set later does not let later bytes overtake.
    if (!chunks_.empty() && chunks_.back().due > due) due = chunks_.back().due;
    chunks_.push_back({due, std::string(bytes, static_cast<std::size_t>(got))});
    queued_ += static_cast<std::size_t>(got);
    ended_ = got == 0;
    return true;
}

bool proxy_flow::write(clock::time_point now) {
    while (wants_to_write(now)) {
        std::string& bytes = chunks_.front().bytes;
        if (bytes.empty()) {
            ::shutdown(sink_, SHUT_WR);
            told_ = true;
            chunks_.pop_front();
            return true;
        }
        const ssize_t sent = ::send(sink_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0) return try_again();
        queued_ -= static_cast<std::size_t>(sent);
        bytes.erase(0, static_cast<std::size_t>(sent));
        if (bytes.empty()) chunks_.pop_front();
    }
    return true;
}

}  // namespace holdfast::testing
