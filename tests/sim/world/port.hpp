// A client's way to one server: what src/api/node.cpp is in a program.
#pragma once

#include <memory>
#include <string>

#include "engine/voter.hpp"
#include "redis/ack_line.hpp"
#include "world/plug.hpp"

namespace holdfast::sim {

class port final : private redis::session_listener, public engine::outbox, public plug {
public:
    port(client& owner, std::size_t node, const redis::server_settings& server, std::uint64_t jitter_seed,
         network& net);

    /// The link for acknowledgements; null before the first is asked for.
    plug* acks() { return acks_.get(); }

    /// Before anybody's settle(): see api::node.
    void catch_up();
    void settle();
    void on_timer();
    instant deadline();
    void forget_links();
    void close();

private:
    // What becomes of its link is told by its commands.
    struct ack_way final : private redis::session_listener, public plug {
        ack_way(client& owner, std::size_t node, const redis::server_settings& server, network& net);

        redis::ack_line line;

    private:
        void on_link_up(const redis::server_facts&, instant) override {}
        void on_link_down(const failure&, instant) override {}
        void on_subscription_refused(const failure&, instant) override {}
        void on_push(const redis::reply_view&, instant) override {}
    };

    void on_link_up(const redis::server_facts& facts, instant now) override;
    void on_link_down(const failure& why, instant now) override;
    void on_subscription_refused(const failure& why, instant now) override;
    void on_push(const redis::reply_view& message, instant now) override;

    void submit(redis::command& request) override { session().submit(request, now()); }
    bool withdraw(redis::command& request) override;
    void distrust(const failure& why) override { session().distrust(why, now()); }
    void subscribe(const std::string& channel) override { session().subscribe(channel); }
    void unsubscribe(const std::string&) override {}
    bool link_is_up(const engine::lock_keys&) const override { return up(); }
    instant trusted_from(const engine::lock_keys&) const override { return trusted_from_; }
    void confirm(redis::command& request, const engine::lock_keys& lock, redis::acknowledgement wanted) override;

    network& net_;
    std::string run_id_;
    instant trusted_from_{};
    std::unique_ptr<ack_way> acks_;
};

}  // namespace holdfast::sim
