// What a client, its locks and its leases share: engine, connection, loop and notifier.
//
// Everything of the engine and the connection happens inside the serial section that the core is. settle(),
// before the section is left, sends what was queued and sets the alarm: once for all that happened, not once for each.
//
// Owned jointly by client, locks and leases, so either may die first; never by anything that runs on the
// loop. Made by make_core(), whose deleter leaves a core alone in a forked child.
#pragma once

#include "api/client_card.hpp"
#include "api/loop.hpp"
#include "api/notifier.hpp"
#include "api/system_random.hpp"
#include "api/watcher.hpp"
#include "base/boot_clock.hpp"
#include "base/fork_guard.hpp"
#include "base/serial_section.hpp"
#include "engine/engine.hpp"
#include "net/alarm.hpp"
#include "redis/connection.hpp"

#include <holdfast/options.hpp>

#include <memory>

namespace holdfast::api {

class core final : public serial_section,
                   public std::enable_shared_from_this<core>,
                   private redis::session_listener,
                   private net::alarm_listener,
                   private engine::outbox {
public:
    core(redis::server_settings settings, client_options options);
    ~core() override;

    // Throws errc::forked in a child of fork().
    void check_not_forked() const;
    bool forked() const noexcept { return fork_generation() != made_in_; }

    const redis::server_settings& settings() const noexcept { return settings_; }
    api::loop& loop() noexcept { return loop_; }
    api::notifier& notifier() noexcept { return notifier_; }
    api::watcher& watcher() noexcept { return watcher_; }
    milliseconds max_lease() const noexcept { return options_.max_lease; }

    // Inside the section only.
    engine::engine& engine() noexcept { return engine_; }
    redis::session& session() noexcept { return connection_.session(); }

private:
    void settle() override;

    void on_link_up(const redis::server_facts& facts, instant now) override;
    void on_link_down(const failure& why, instant now) override;
    void on_subscription_refused(const failure& why, instant now) override;
    void on_push(const redis::reply_view& message, instant now) override;

    void on_alarm() override;

    void submit(redis::command& request) override;
    bool withdraw(redis::command& request) override;
    void distrust(const failure& why) override;
    void subscribe(const std::string& channel) override;
    bool link_is_up() const override;

    const std::uint64_t made_in_;
    const redis::server_settings settings_;
    const client_options options_;
    api::notifier notifier_;
    api::loop loop_;
    api::watcher watcher_;
    system_random random_;
    net::alarm alarm_;
    redis::connection connection_;
    engine::engine engine_;
    client_card card_;
};

std::shared_ptr<core> make_core(std::string_view url, client_options options);

}  // namespace holdfast::api
