// What a client, its locks and its leases share: engine, nodes, loop and notifier.
//
// Everything of the engine and the places happens inside the serial section that the core is. settle(),
// before the section is left, sends what was queued and sets the alarm: once for all that happened, not once for each.
//
// Owned jointly by client, locks and leases, so either may die first; never by anything that runs on the
// loop. Made by make_core(), whose deleter leaves a core alone in a forked child.
#pragma once

#include "api/backends/backend.hpp"
#include "api/locks/kept_locks.hpp"
#include "api/runtime/credentials_desk.hpp"
#include "api/runtime/loop.hpp"
#include "api/runtime/notifier.hpp"
#include "api/runtime/posted_releases.hpp"
#include "api/runtime/recorder.hpp"
#include "api/runtime/system_random.hpp"
#include "base/boot_clock.hpp"
#include "base/fork_guard.hpp"
#include "base/serial_section.hpp"
#include "engine/engine.hpp"
#include "net/alarm.hpp"

#include <holdfast/options.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::api {

class core final : public serial_section, public std::enable_shared_from_this<core>, private net::alarm_listener {
public:
    core(const std::vector<redis::server_settings>& servers, client_options options);
    ~core() override;

    // Throws errc::forked in a child of fork().
    void check_not_forked() const;
    bool forked() const noexcept { return fork_generation() != made_in_; }

    // The longest of the servers'.
    milliseconds request_timeout() const noexcept { return request_timeout_; }
    milliseconds shortest_request_timeout() const noexcept { return shortest_request_timeout_; }
    // The servers, without their passwords.
    const std::string& display() const noexcept { return display_; }
    api::loop& loop() noexcept { return loop_; }
    api::notifier& notifier() noexcept { return notifier_; }
    api::recorder& recorder() noexcept { return recorder_; }
    milliseconds max_lease() const noexcept { return options_.max_lease; }
    milliseconds shortest_lease() const noexcept;
    milliseconds fence_retention() const noexcept { return options_.fence_retention; }
    unsigned max_depth() const noexcept { return options_.max_depth; }
    kept_locks& kept() noexcept { return kept_; }

    // Inside the section only.
    engine::engine& engine() noexcept { return engine_; }
    // The first that is connected; the first if none is.
    backend& some_server() noexcept;
    backend& server(std::size_t which) noexcept { return *backends_[which]; }
    std::size_t servers() const noexcept { return backends_.size(); }

    // When the section was last left, some bytes waited for the loop to go on. Any thread.
    bool is_sending() const noexcept { return is_sending_.load(std::memory_order_relaxed); }

    // A release that nobody waits for, from any thread; and its end, inside the section. The core does not go in
    // between.
    void release_is_posted() noexcept { posted_releases_.begin(); }
    void posted_release_has_ended() { posted_releases_.end(); }
    // Returns when none is under way, at `latest` in any case.
    void wait_for_posted_releases(instant latest) { posted_releases_.wait(latest, boot_now()); }
    // As enter_with(), for what nobody waits for either: the core does not go before it has run.
    template <typename Function>
    void post(Function function);

private:
    void settle() override;
    void on_alarm() override;
    void use_credentials(redis::server_settings& server);
    std::vector<std::unique_ptr<backend>> make_backends(const std::vector<redis::server_settings>& servers);
    std::vector<engine::node_link> links() const;

    const std::uint64_t made_in_;
    const client_options options_;
    const milliseconds shortest_request_timeout_;
    const milliseconds request_timeout_;
    const std::string display_;
    api::loop loop_;
    api::notifier notifier_;
    api::recorder recorder_;
    system_random random_;
    net::alarm alarm_;
    credentials_desk credentials_;
    run_claims runs_;
    std::vector<std::unique_ptr<backend>> backends_;
    engine::engine engine_;
    kept_locks kept_;
    std::atomic<bool> is_sending_ = false;
    posted_releases posted_releases_;
};

template <typename Function>
void core::post(Function function) {
    auto counted = [this, function = std::move(function)]() mutable {
        function();
        posted_release_has_ended();
    };
    serial_task& task = *new owned_task<decltype(counted)>(std::move(counted));  // without memory nothing is posted
    release_is_posted();
    enter(task);
}

std::shared_ptr<core> make_core(const std::vector<std::string>& urls, client_options options);
// Of servers that no URL can name.
std::shared_ptr<core> make_core(const std::vector<redis::server_settings>& servers, client_options options);

}  // namespace holdfast::api
