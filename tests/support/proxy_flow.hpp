// One direction of a proxied connection: a queue of chunks, each with the time from which it may be passed on.
//
// Lives on the proxy's thread; both sockets are non-blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>

namespace holdfast::testing {

class proxy_flow {
public:
    using clock = std::chrono::steady_clock;

    proxy_flow(int source, int sink) noexcept : source_{source}, sink_{sink} {}

    int source() const noexcept { return source_; }
    int sink() const noexcept { return sink_; }

    /// Is there room to read more?
    bool wants_to_read() const noexcept;
    /// Is something due to be written (or the end to be told)?
    bool wants_to_write(clock::time_point now) const noexcept;
    /// When something will be due; nothing if the queue is empty.
    std::optional<clock::time_point> due() const noexcept;
    /// Both the source has ended and the sink has been told.
    bool finished() const noexcept { return told_; }

    /// Takes what the source has. False if the connection is broken.
    bool read(clock::time_point due);
    /// Passes on what is due. False if the connection is broken.
    bool write(clock::time_point now);

private:
    struct chunk {
        clock::time_point due;
        std::string bytes;  // empty: the end
    };

    int source_;
    int sink_;
    bool ended_ = false;
    bool told_ = false;
    std::size_t queued_ = 0;
    std::deque<chunk> chunks_;
};

}  // namespace holdfast::testing
