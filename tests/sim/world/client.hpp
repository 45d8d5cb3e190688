// A client process: the real engine and the real session, with the driver that src/redis/connection.cpp and
// src/api/core.cpp are to them in a program. It can be paused (its events wait, as they do for a stopped
// process) and can die.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "redis/session.hpp"
#include "world/link.hpp"

namespace holdfast::sim {

class client;

/// Makes links; answers with client::connected() or client::not_connected(), later.
class network {
public:
    virtual void connect(client& from) = 0;

protected:
    ~network() = default;
};

struct client_setup {
    std::size_t number = 0;
    redis::server_settings server;
    engine::engine_settings engine;
    milliseconds max_lease{0};           // not zero: a restarted server is mistrusted for so long
    bool clock_stops_in_pauses = false;  // mutant: CLOCK_MONOTONIC where CLOCK_BOOTTIME is due
};

class client final : private redis::session_listener, private engine::outbox, private engine::observer {
public:
    client(timeline& time, chance luck, engine::random_source& ids, client_setup setup, network& net);

    std::size_t number() const { return setup_.number; }
    engine::engine& engine() { return engine_; }
    instant now() const { return time_.now() - slept_; }
    nanoseconds slept() const { return slept_; }
    link* wire() { return link_; }

    /// Does it now, or when the pause ends; never after death.
    void when_awake(timeline::action what);
    void start();
    void pause_until(instant then);
    void die();
    void close();
    bool dead() const { return dead_; }
    bool paused() const { return paused_; }

    // --- for the network
    void connected(link& fresh, unsigned attempt);
    void not_connected(unsigned attempt);
    void received(link& from, const packet& what);
    unsigned attempt() const { return attempt_; }

    // --- troubles, as the judge counts them
    void trouble_until(instant then) { trouble_until_ = std::max(trouble_until_, then); }
    bool calm_since(instant since) const;
    instant resumed_at() const { return resumed_at_; }

private:
    void settle();
    void hang_up();
    void on_alarm();

    void on_link_up(const redis::server_facts& facts, instant now) override;
    void on_link_down(const failure& why, instant now) override;
    void on_subscription_refused(const failure& why, instant now) override;
    void on_push(const redis::reply_view& message, instant now) override;

    void submit(redis::command& request) override { session_.submit(request, now()); }
    bool withdraw(redis::command& request) override { return session_.withdraw(request); }
    void distrust(const failure& why) override { session_.distrust(why, now()); }
    void subscribe(const std::string& channel) override { session_.subscribe(channel); }
    bool link_is_up() const override { return session_.up(); }

    void on_acquired(nanoseconds, holdfast::engine::how) override {}
    void on_reentered() override {}
    void on_refused() override {}
    void on_released(nanoseconds) override {}
    void on_renewed() override {}
    void on_renewal_failed(const failure&) override {}
    void on_lost(const std::string&, errc) override {}
    void on_votes(const std::string&, engine::votes_now, engine::vote_count) override {}

    timeline& time_;
    chance luck_;
    client_setup setup_;
    network& net_;
    redis::session session_;
    engine::engine engine_;
    link* link_ = nullptr;
    unsigned attempt_ = 0;
    bool dead_ = false;
    bool paused_ = false;
    std::vector<timeline::action> postponed_;
    instant armed_ = never;
    instant paused_at_{};
    instant resumed_at_{};
    nanoseconds slept_{0};
    instant trouble_until_{};
};

}  // namespace holdfast::sim
