// Moves the bytes of one session through one stream after another.
//
// Lives in the client's serial section. The owner calls pump() after every event: it does what the session wishes and
// sends its output.
#pragma once

#include "base/boot_clock.hpp"
#include "net/stream.hpp"
#include "redis/session/session.hpp"

#include <memory>
#include <utility>

namespace holdfast::redis {

class connection final : private net::stream_listener {
public:
    connection(boost::asio::io_context& context, serial_section& section, server_settings settings,
               session_listener& listener, std::uint64_t jitter_seed);
    ~connection() { hang_up(); }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    redis::session& session() noexcept { return session_; }
    const redis::session& session() const noexcept { return session_; }

    // Connects, hangs up and sends, as the session wishes. Cheap if there is nothing to do.
    void pump(instant now);
    // A write is in flight, and other output waits for its end.
    bool is_sending() const noexcept { return sending_; }
    // Ends the session and the stream at once.
    void close(instant now) {
        session_.close(now);
        pump(now);
    }
    // Ends the stream without telling the session.
    void drop() { hang_up(); }
    // No operation uses the buffers of the session any more, not even a cancelled one.
    bool is_quiet() const noexcept { return !stream_ && given_up_.expired(); }

private:
    // A handler may wait for the section while its occupant gives the link up. Such an event is ignored.
    void on_reached() override {
        if (!session_.wishes_hang_up()) session_.reached();
    }
    void on_connected() override;
    void on_received(std::size_t count) override;
    void on_sent() override;
    void on_stream_failed(failure why) override {
        if (!session_.wishes_hang_up()) session_.failed(std::move(why), boot_now());
    }

    // Lets answers to earlier questions find out that the connection is gone.
    struct login_desk final : login_receiver {
        explicit login_desk(redis::session& told) : link(told) {}
        void on_login(login given) override { link.log_in_with(std::move(given), boot_now()); }
        void on_no_login(const failure& why) override { link.no_login(why, boot_now()); }
        redis::session& link;
    };

    void connect(instant now);
    void hang_up();
    void read_more() { stream_->read(session_.prepare(16 * 1024)); }

    boost::asio::io_context& context_;
    serial_section& section_;
    redis::session session_;
    const std::shared_ptr<login_desk> login_desk_ = std::make_shared<login_desk>(session_);
    std::shared_ptr<net::stream> stream_;
    std::weak_ptr<net::stream> given_up_;  // lives until its operations have ended
    bool sending_ = false;
};

}  // namespace holdfast::redis
