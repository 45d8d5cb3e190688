#include "api/backends/wake_link.hpp"

namespace holdfast::api {

void wake_link::follow(const redis::server_settings& server, const std::string& run_id, instant now) {
    redis::session& session = link_.session();
    session.found({server.host, server.port}, now);
    if (session.up() && session.facts().run_id != run_id) {
        session.distrust({errc::unreachable, server.display() + ": another server answers there by now"}, now);
    }
}

void wake_link::on_timer(instant now) {
    redis::session& session = link_.session();
    session.on_timer(now);
    if (session.has_failed() && !std::exchange(has_told_trouble_, true)) {
        told_.on_wake_link_down(session.last_failure(), now);
    }
}

}  // namespace holdfast::api
