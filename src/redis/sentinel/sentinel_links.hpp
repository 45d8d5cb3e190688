// The links to the sentinels of one primary, with their sentinel_watch.
//
// Moves the bytes for sentinel_watch, as connection does for session. Lives in the client's serial section.
#pragma once

#include "redis/sentinel/sentinel_watch.hpp"
#include "redis/session/connection.hpp"

#include <memory>
#include <vector>

namespace holdfast::redis {

class sentinel_links {
public:
    sentinel_links(boost::asio::io_context& context, serial_section& section, const server_settings& settings,
                   primary_listener& listener, std::uint64_t jitter_seed);

    // Asks for the primary if the session needs its address, and reports what the sentinels have said.
    void look(session& primary, instant now);
    void pump(instant now);
    void close(instant now);
    void on_timer(instant now);
    instant deadline() const noexcept;

private:
    sentinel_watch watch_;
    std::vector<std::unique_ptr<connection>> links_;
};

}  // namespace holdfast::redis
