// A client process: the real engine and, through its backends, the real sessions and routers. The client drives them as
// src/api/runtime/core.cpp does in a program.
//
// A client can be paused: its events wait, as they do for a stopped process. It can die: nothing runs afterwards.
// "Trouble" is whatever may delay a client: a fault of its links, a pause, a server that is down or not trusted. The
// checker expects promptness only of clients that had no trouble since the moment in question.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "world/backend.hpp"

namespace holdfast::sim {

// After trouble ends, everything it delayed is done within this time.
inline constexpr milliseconds aftermath{150};

struct client_setup {
    std::size_t number = 0;
    std::size_t servers = 1;
    redis::server_settings server;  // with seeds: a Cluster, which is then the only node
    std::vector<std::shared_ptr<const wire::lock_keys>> locks = {};  // all locks of the scenario
    engine::engine_settings engine;
    engine::woken_by wakes = engine::woken_by::push;  // a Cluster client goes by `server.wake`
    milliseconds max_lease{0};                        // not zero: a restarted server is not trusted for this long
    bool clock_stops_in_pauses = false;               // mutant: CLOCK_MONOTONIC instead of CLOCK_BOOTTIME
    bool first_failure_ends_waits = false;            // mutant: the first failed attempt to connect ends every wait
    bool subscribes_late = false;                     // mutant: only after what it has asked is answered
    bool is_deaf_to_changes = false;                  // mutant: a watcher hears nothing
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
    engine::woken_by wakes() const { return setup_.wakes; }
    bool subscribes_late() const { return setup_.subscribes_late; }
    bool is_deaf_to_changes() const { return setup_.is_deaf_to_changes; }
    bool waits_for_first_links() const { return !setup_.first_failure_ends_waits; }
    const std::vector<std::shared_ptr<const wire::lock_keys>>& locks() const { return setup_.locks; }

    /// Runs `what` now, or when the pause ends; never after the process died.
    template <class Action>
    void when_awake(Action&& what) {
        if (dead_) return;
        ++runs_;
        if (paused_) return postponed_.emplace_back(std::forward<Action>(what)), void();
        what();
        settle();
    }
    void later(nanoseconds wait, timeline::action what) {
        time_.after(wait, [this, what = std::move(what)] { when_awake(what); });
    }
    void start();
    void pause_until(instant then);
    void pause();
    /// What a process does first that goes on after a pause: its timers are due, and messages have arrived.
    enum class first : std::uint8_t { timers, messages };
    void resume(first what);
    void die();
    void close();
    bool dead() const { return dead_; }
    bool paused() const { return paused_; }

    // --- trouble, as the checker counts it
    void trouble_until(instant then) { trouble_until_ = std::max(trouble_until_, then); }
    /// The client has to notice by itself that its link is dead.
    void trouble_until_noticed();
    /// Trouble ends at `from`; its effects last for `aftermath`.
    void trouble_passes(instant from);
    void trouble_passes() { trouble_passes(time_.now()); }
    bool calm_since(instant since) const;
    /// No link to the owner of the lock is up, and the time since `since`, or since the last trouble, is shorter than
    /// finding the owner may take.
    bool may_still_be_connecting(const wire::lock_keys& lock, instant since) const;
    instant resumed_at() const { return resumed_at_; }
    /// It holds nothing, wants nothing, and owes nothing to a server.
    bool is_quiet() const { return engine_->holds() == 0; }
    /// How often something has run in it.
    std::uint64_t runs() const { return runs_; }

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
    void on_support(const std::string&, engine::support_now, engine::support_count) override {}

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
    std::uint64_t runs_ = 0;
    instant trouble_until_{};
};

}  // namespace holdfast::sim
