// A client's way to one server: the real session, and the link that it has at the moment, if any. It is what
// src/redis/connection.cpp and src/api/node.cpp are in a program.
#pragma once

#include <algorithm>
#include <string>

#include "base/assert.hpp"
#include "engine/voter.hpp"
#include "redis/session.hpp"
#include "world/link.hpp"

namespace holdfast::sim {

class client;
class port;

/// Makes links; answers with port::connected() or port::not_connected(), later.
class network {
public:
    virtual void connect(port& from) = 0;

protected:
    ~network() = default;
};

class port final : private redis::session_listener, public engine::outbox {
public:
    port(client& owner, std::size_t node, redis::server_settings server, std::uint64_t jitter_seed, network& net);

    client& owner() { return owner_; }
    /// The number of the server.
    std::size_t node() const { return node_; }
    link* wire() { return link_; }
    redis::session& session() { return session_; }
    bool up() const { return session_.up(); }

    /// Connects, hangs up and sends, as the session wishes.
    void settle();
    void hang_up();
    void forget_link();

    // --- for the network
    void connected(link& fresh, unsigned attempt);
    void not_connected(unsigned attempt);
    void received(link& from, const packet& what);
    unsigned attempt() const { return attempt_; }

private:
    instant now() const;

    void on_link_up(const redis::server_facts& facts, instant now) override;
    void on_link_down(const failure& why, instant now) override;
    void on_subscription_refused(const failure& why, instant now) override;
    void on_push(const redis::reply_view& message, instant now) override;

    void submit(redis::command& request) override { session_.submit(request, now()); }
    bool withdraw(redis::command& request) override { return session_.withdraw(request); }
    void distrust(const failure& why) override { session_.distrust(why, now()); }
    void subscribe(const std::string& channel) override { session_.subscribe(channel); }
    void unsubscribe(const std::string&) override {}
    bool link_is_up(const engine::lock_keys&) const override { return session_.up(); }
    instant trusted_from(const engine::lock_keys&) const override { return trusted_from_; }
    void confirm(redis::command&, const engine::lock_keys&, redis::acknowledgement) override {
        HOLDFAST_ASSERT(false);  // nobody in the simulator asks for replicas
    }

    client& owner_;
    const std::size_t node_;
    network& net_;
    redis::session session_;
    std::string run_id_;
    instant trusted_from_{};
    link* link_ = nullptr;
    unsigned attempt_ = 0;
};

}  // namespace holdfast::sim
