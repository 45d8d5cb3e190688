// One of the servers that vote: its connection, and the voter that speaks to it. Lives in the core's serial section.
#pragma once

#include "api/client_card.hpp"
#include "api/watcher.hpp"
#include "engine/voter.hpp"
#include "redis/connection.hpp"

#include <holdfast/options.hpp>

#include <boost/asio/io_context.hpp>

namespace holdfast::api {

class node final : private redis::session_listener, public engine::outbox {
public:
    // Nothing is believed of a server that was started less than `mistrusted_for` ago.
    struct surroundings {
        boost::asio::io_context& context;
        serial_section& section;
        api::watcher& watcher;
        milliseconds mistrusted_for;
        std::uint64_t jitter_seed;
    };
    node(const surroundings& where, redis::server_settings settings);

    // Before anything else: whom events are for, and whose card is shown there.
    void attach(engine::voter& mine, const std::string& client_id);

    const redis::server_settings& settings() const noexcept { return connection_.session().settings(); }
    redis::session& session() noexcept { return connection_.session(); }
    void pump(instant now) { connection_.pump(now); }
    void close(instant now);
    void on_timer(instant now);
    instant deadline() const noexcept;

private:
    void on_link_up(const redis::server_facts& facts, instant now) override;
    void on_link_down(const failure& why, instant now) override;
    void on_subscription_refused(const failure& why, instant now) override;
    void on_push(const redis::reply_view& message, instant now) override;

    void submit(redis::command& request) override;
    bool withdraw(redis::command& request) override;
    void distrust(const failure& why) override;
    void subscribe(const std::string& channel) override;
    bool link_is_up() const override;

    api::watcher& watcher_;
    const milliseconds mistrusted_for_;
    std::string run_id_;      // of the server at the last link
    instant trusted_from_{};  // by now
    redis::connection connection_;
    engine::voter* voter_ = nullptr;
    std::unique_ptr<client_card> card_;
};

}  // namespace holdfast::api
