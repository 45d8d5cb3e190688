#include "redis/session/connection.hpp"

namespace holdfast::redis {

connection::connection(boost::asio::io_context& context, serial_section& section, server_settings settings,
                       session_listener& listener, std::uint64_t jitter_seed)
    : context_(context), section_(section), session_(std::move(settings), listener, jitter_seed) {}

void connection::pump(instant now) {
    if (session_.take_hang_up_wish()) hang_up();
    if (session_.take_login_wish()) {
        const server_settings& settings = session_.settings();
        settings.logins->ask(settings.display(), login_desk_);
    }
    if (session_.take_connect_wish()) connect(now);
    while (stream_ && !sending_ && session_.has_output()) {
        sending_ = stream_->write(session_.begin_write(now)) == net::stream::sending::in_flight;
        if (!sending_) session_.end_write();
    }
}

void connection::connect(instant now) {
    hang_up();
    try {
        stream_ = net::make_stream(context_, section_, session_.settings().endpoint(), *this);
        stream_->connect();
    } catch (const error& unusable) {
        return session_.failed({unusable.condition(), unusable.what()}, now);
    } catch (const std::exception& unusable) {
        return session_.failed({errc::unreachable, session_.settings().display() + ": " + unusable.what()}, now);
    }
}

void connection::hang_up() {
    if (!stream_) return;
    stream_->close();
    given_up_ = stream_;
    stream_.reset();
    sending_ = false;
}

void connection::on_connected() {
    if (session_.wishes_hang_up()) return;
    session_.connected(boot_now());
    read_more();
}

void connection::on_received(std::size_t count) {
    if (session_.wishes_hang_up()) return;
    const std::shared_ptr<net::stream> link = stream_;
    session_.received(count, boot_now());
    // If a callback gave this link up, pump() is about to close it: no further read.
    if (session_.linked()) read_more();
}

void connection::on_sent() {
    if (session_.wishes_hang_up()) return;
    sending_ = false;
    session_.end_write();
}

}  // namespace holdfast::redis
