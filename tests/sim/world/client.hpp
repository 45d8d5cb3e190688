// A client process: the real engine and, by its backends, the real sessions and routers, with the driver that
// src/api/runtime/core.cpp is to them in a program. It can be paused (its events wait, as they do for a stopped
// process) and can die.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "world/backend.hpp"

namespace holdfast::sim {

// What was delayed by a trouble is made up for within this; the trouble ends with its last consequence.
inline constexpr milliseconds aftermath{150};

struct client_setup {
    std::size_t number = 0;
    std::size_t servers = 1;
    redis::server_settings server;  // with seeds: it is a Cluster, and the only one that votes
    std::vector<std::shared_ptr<const wire::lock_keys>> locks = {};  // those of the scenario
    engine::engine_settings engine;
    milliseconds max_lease{0};              // not zero: a restarted server is mistrusted for so long
    bool clock_stops_in_pauses = false;     // mutant: CLOCK_MONOTONIC where CLOCK_BOOTTIME is due
    bool first_failure_ends_waits = false;  // mutant: a first attempt to connect that fails ends every wait
};

class client final : private engine::observer {
public:
    client(timeline& time, random_stream random, random_source& ids, client_setup setup, network& net);

    std::size_t number() const { return setup_.number; }
    engine::engine& engine() { return *engine_; }
    backend& backend_to(std::size_t node) { return *backends_[node]; }
    const std::vector<std::unique_ptr<backend>>& backends() { return backends_; }
    instant now() const { return time_.now() - slept_; }
    nanoseconds slept() const { return slept_; }
    milliseconds mistrusts_for() const { return setup_.max_lease; }
    milliseconds first_connect() const { return setup_.engine.first_connect; }
    bool waits_for_first_links() const { return !setup_.first_failure_ends_waits; }
    const std::vector<std::shared_ptr<const wire::lock_keys>>& locks() const { return setup_.locks; }

    /// Does it now, or when the pause ends; never after death.
    template <class Action>
    void when_awake(Action&& what) {
        if (dead_) return;
        if (paused_) return postponed_.emplace_back(std::forward<Action>(what)), void();
        what();
        settle();
    }
    void start();
    void pause_until(instant then);
    void die();
    void close();
    bool dead() const { return dead_; }
    bool paused() const { return paused_; }

    // --- troubles, as the checker counts them
    void trouble_until(instant then) { trouble_until_ = std::max(trouble_until_, then); }
    /// It has to find out by itself that nothing comes over its link any more.
    void trouble_until_noticed();
    /// What was delayed by a trouble is made up for within a moment.
    void trouble_passes(instant from);
    void trouble_passes() { trouble_passes(time_.now()); }
    bool calm_since(instant since) const;
    /// Whoever has that lock is not linked to; nor has more time passed, since then or since the last trouble, than
    /// finding it takes.
    bool may_still_be_connecting(const wire::lock_keys& lock, instant since) const;
    instant resumed_at() const { return resumed_at_; }

private:
    std::unique_ptr<backend> make_backend(std::size_t node, network& net);
    void settle();
    void on_alarm();
    bool has_dead_link() const;

    void on_acquired(nanoseconds, holdfast::engine::how) override {}
    void on_reentered() override {}
    void on_refused() override {}
    void on_released(nanoseconds) override {}
    void on_renewed() override {}
    void on_renewal_failed(const failure&) override {}
    void on_lost(const std::string&, errc) override {}
    void on_votes(const std::string&, engine::votes_now, engine::vote_count) override {}

    timeline& time_;
    random_stream random_;
    client_setup setup_;
    std::vector<std::unique_ptr<backend>> backends_;
    std::unique_ptr<engine::engine> engine_;
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
