// The links to the sentinels of one primary, with their sentinel_watch.
//
// Moves the bytes for sentinel_watch, as connection does for session. Lives in the client's serial section.
#pragma once

#include "redis/sentinel/sentinel_watch.hpp"
#include "redis/session/connection.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace holdfast::redis {

class sentinel_links {
public:
    sentinel_links(boost::asio::io_context& context, serial_section& section, const server_settings& settings,
                   primary_listener& listener, std::uint64_t jitter_seed)
        : watch_(settings, listener) {
        for (std::size_t i = 0; i < watch_.size(); ++i) {
            const auto& link = links_.emplace_back(
                std::make_unique<connection>(context, section, settings.for_sentinel(settings.sentinels->addresses[i]),
                                             watch_.listener(i), jitter_seed + i));
            watch_.attach(i, link->session());
        }
    }

    // Asks for the primary if the session needs its address, and reports what the sentinels have said.
    void look(session& primary, instant now) {
        if (primary.take_seek_wish()) watch_.seek(now);
        watch_.on_timer(now);
    }
    void pump(instant now) {
        for (const auto& each : links_) each->pump(now);
    }
    void close(instant now) {
        for (const auto& each : links_) each->close(now);
    }
    void on_timer(instant now) {
        for (const auto& each : links_) each->session().on_timer(now);
    }
    instant deadline() const noexcept {
        instant earliest = watch_.deadline();
        for (const auto& each : links_) earliest = std::min(earliest, each->session().deadline());
        return earliest;
    }

private:
    sentinel_watch watch_;
    std::vector<std::unique_ptr<connection>> links_;
};

}  // namespace holdfast::redis
