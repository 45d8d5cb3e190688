// A server that votes: its connection, and the node_input that speaks to it. Lives in the core's serial section.
//
// With sentinels the connection goes where they say, and moves when they name another primary. To the node_input that
// is a link that went down and came up again.
//
// Waiters hear on the same connection; where the server speaks only RESP2 on a second one; where it refuses
// subscriptions, or while the second connection is down, they poll.
#pragma once

#include "api/backends/ack_links.hpp"
#include "api/backends/backend.hpp"
#include "api/backends/client_card.hpp"
#include "api/backends/wake_link.hpp"
#include "base/boot_clock.hpp"
#include "engine/engine.hpp"
#include "redis/sentinel/sentinel_links.hpp"
#include "redis/session/connection.hpp"

#include <holdfast/options.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::api {

class server_backend final : public backend,
                             private redis::session_listener,
                             private redis::primary_listener,
                             private ack_listener,
                             private wake_listener,
                             private engine::outbox {
public:
    server_backend(const surroundings& where, redis::server_settings settings);

    engine::node_link link() override { return {this, settings().display()}; }
    void attach(engine::node_input& mine, const std::string& client_id) override;
    bool up() const override { return connection_.session().up(); }
    void submit(redis::command& request, instant now) override { session().submit(request, now); }
    void look_around(instant now) override;
    void pump(instant now) override;
    bool is_sending() const override { return connection_.is_sending(); }
    void close(instant now) override;
    void on_timer(instant now) override;
    instant deadline() const noexcept override {
        instant due = std::min({connection_.session().deadline(), card_->due(), acks_.deadline()});
        if (wakes_) due = std::min(due, wakes_->deadline());
        return sentinels_ ? std::min(due, sentinels_->deadline()) : due;
    }

private:
    const redis::server_settings& settings() const noexcept { return connection_.session().settings(); }
    redis::session& session() noexcept { return connection_.session(); }

    std::optional<failure> objection(const redis::server_facts& facts) override;
    void on_link_up(const redis::server_facts& facts, instant now) override;
    void on_link_down(const failure& why, instant now) override;
    void on_subscription_refused(const failure& why, instant now) override { on_wakes_refused(why, now); }
    void on_push(const redis::reply_view& message, instant now) override { input_->on_push(message, now); }

    void on_primary(const redis::known_primary& found, instant now) override {
        primary_since_ = found.since ? now - *found.since : now;
        session().found(found.address, now);
    }
    void on_later_take_over(const redis::known_primary& found, instant now) override;
    void on_no_primary(const failure& why, instant now) override { session().failed(why, now); }

    void on_ack_link_up(const redis::server_facts& facts, instant now) override { compare_servers(facts, now); }

    void on_wake_link_up(const redis::server_facts& facts, instant now) override;
    void on_wake_link_down(const failure& why, instant now) override;
    void on_wakes_refused(const failure& why, instant now) override;
    void on_wake_up(const redis::reply_view& message, instant now) override { input_->on_push(message, now); }
    void compare_servers(const redis::server_facts& facts, instant now);
    void listen(instant now);
    void stop_listening_apart(instant now);

    void look_for_lost_history(instant now);
    std::chrono::nanoseconds known_for(const redis::server_facts& facts, instant now) const;

    void submit(redis::command& request) override { session().submit(request, boot_now()); }
    bool withdraw(redis::command& request) override { return acks_.withdraw(request) || session().withdraw(request); }
    void distrust(const failure& why) override { session().distrust(why, boot_now()); }
    void subscribe(const std::string& channel) override {
        channel_ = channel;
        listen(boot_now());
    }
    bool hears(const std::string& channel) const override {
        return connection_.session().hears(channel) || (wakes_ && wakes_->hears(channel));
    }
    engine::woken_by wakes(const std::string& channel) const override;
    void unsubscribe(const std::string& /*channel*/) override {}  // the only one it has: wanted again soon
    bool link_is_up(const engine::lock_keys&) const override { return up(); }
    failure why_not_up(const engine::lock_keys&) const override { return connection_.session().why_not_up(); }
    instant trusted_from(const engine::lock_keys&) const override { return trusted_from_; }
    // The write was done by the run to which the last link led.
    void confirm(redis::command& request, const engine::lock_keys&, redis::acknowledgement wanted) override {
        acks_.submit(request, {wanted, run_id_}, settings(), client_id_);
    }

    api::recorder& recorder_;
    run_claims& runs_;
    const milliseconds mistrusted_for_;
    std::string client_id_;
    std::string run_id_;           // of the server at the last link
    instant trusted_from_{};       // by now
    unsigned lost_histories_ = 0;  // as far as they are known
    instant primary_since_{};      // as the sentinels say
    redis::connection connection_;
    std::unique_ptr<redis::sentinel_links> sentinels_;  // none: the server is where the URL says
    engine::node_input* input_ = nullptr;
    std::unique_ptr<client_card> card_;
    ack_links acks_;
    std::string channel_;           // of this client's waiters; empty: none has waited
    bool refuses_to_wake_ = false;  // on the present link
    bool has_told_of_resp2_ = false;
    bool has_told_of_refusal_ = false;
    std::unique_ptr<wake_link> wakes_;                    // only where the server speaks RESP2
    std::vector<std::unique_ptr<wake_link>> left_wakes_;  // freed when they are quiet
    boost::asio::io_context& context_;
    serial_section& section_;
    const std::uint64_t jitter_seed_;
};

}  // namespace holdfast::api
