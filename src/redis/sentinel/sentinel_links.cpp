#include "redis/sentinel/sentinel_links.hpp"

#include <algorithm>

namespace holdfast::redis {

sentinel_links::sentinel_links(boost::asio::io_context& context, serial_section& section,
                               const server_settings& settings, primary_listener& listener, std::uint64_t jitter_seed)
    : watch_(settings, listener) {
    for (std::size_t i = 0; i < watch_.size(); ++i) {
        const auto& link = links_.emplace_back(
            std::make_unique<connection>(context, section, settings.for_sentinel(settings.sentinels->addresses[i]),
                                         watch_.listener(i), jitter_seed + i));
        watch_.attach(i, link->session());
    }
}

void sentinel_links::look(session& primary, instant now) {
    if (primary.take_seek_wish()) watch_.seek(now);
    watch_.on_timer(now);
}

void sentinel_links::pump(instant now) {
    for (const auto& each : links_) each->pump(now);
}

void sentinel_links::close(instant now) {
    for (const auto& each : links_) each->close(now);
}

void sentinel_links::on_timer(instant now) {
    for (const auto& each : links_) each->session().on_timer(now);
}

instant sentinel_links::deadline() const noexcept {
    instant earliest = watch_.deadline();
    for (const auto& each : links_) earliest = std::min(earliest, each->session().deadline());
    return earliest;
}

}  // namespace holdfast::redis
