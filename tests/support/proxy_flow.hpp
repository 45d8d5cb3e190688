// One direction of a proxied connection: a queue of chunks, each with the time from which it may be forwarded. Used on
// the proxy's thread only; both sockets are non-blocking.
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

    /// True if there is room to read more.
    bool wants_to_read() const noexcept;
    /// True if data, or the end of the stream, is due to be written.
    bool wants_to_write(clock::time_point now) const noexcept;
    /// When data will be due; nothing if the queue is empty.
    std::optional<clock::time_point> due() const noexcept;
    /// True if the source has ended and the sink knows it.
    bool finished() const noexcept { return told_; }

    /// Reads what the source has. False if the connection is broken.
    bool read(clock::time_point due);
    /// Writes what is due. False if the connection is broken.
    bool write(clock::time_point now);

private:
    struct chunk {
        clock::time_point due;
        std::string bytes;  // empty: end of the stream
    };

    int source_;
    int sink_;
    bool ended_ = false;
    bool told_ = false;
    std::size_t queued_ = 0;
    std::deque<chunk> chunks_;
};

}  // namespace holdfast::testing
