// One server as a backend. Stands for src/api/backends/server_backend.cpp.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "world/ack_plug.hpp"
#include "world/backend.hpp"
#include "world/client.hpp"

namespace holdfast::sim {

class server_backend final : private redis::session_listener, private engine::outbox, public plug, public backend {
public:
    server_backend(client& owner, std::size_t server_number, const redis::server_settings& server,
                   std::uint64_t jitter_seed, network& net);

    engine::node_link link() override { return {this, "sim"}; }
    void attach(engine::node_input& mine) override { input_ = &mine; }
    void catch_up() override;
    void settle() override;
    void on_timer() override;
    instant deadline() override;
    void forget_links() override;
    void close() override;
    bool all_up() const override { return up(); }
    bool reaches(const wire::lock_keys&) const override { return up(); }
    /// The second one, if there is one, is for acknowledgements.
    std::vector<plug*> plugs() override;

private:
    void on_link_up(const redis::server_facts& facts, instant now) override;
    void on_link_down(const failure& why, instant now) override;
    void on_subscription_refused(const failure& why, instant now) override;
    void on_push(const redis::reply_view& message, instant now) override;

    void submit(redis::command& request) override;
    bool withdraw(redis::command& request) override;
    void distrust(const failure& why) override { session().distrust(why, now()); }
    void subscribe(const std::string& channel) override;
    engine::woken_by wakes(const std::string&) const override { return owner().wakes(); }
    bool hears(const std::string& channel) const override { return session().hears(channel); }
    void unsubscribe(const std::string&) override {}
    bool link_is_up(const engine::lock_keys&) const override { return up(); }
    failure why_not_up(const engine::lock_keys&) const override { return session().why_not_up(); }
    instant trusted_from(const engine::lock_keys&) const override { return trusted_from_; }
    void confirm(redis::command& request, const engine::lock_keys& lock, redis::acknowledgement wanted) override;

    network& net_;
    engine::node_input* input_ = nullptr;
    std::string run_id_;
    instant trusted_from_{};
    std::unique_ptr<ack_plug> acks_;
    unsigned lost_histories_ = 0;  // as far as this client knows
};

}  // namespace holdfast::sim
