// Counts and logs the events of the engine and the connections. Almost free if neither is enabled.
#pragma once

#include "api/runtime/notifier.hpp"
#include "engine/engine.hpp"
#include "redis/url/server_url.hpp"

#include <holdfast/options.hpp>

#include <string>
#include <utility>

namespace holdfast::api {

class recorder final : public engine::observer {
public:
    recorder(const client_options& options, api::notifier& notifier)
        : metrics_(options.metrics), log_(options.log), trace_(options.trace), notifier_(notifier) {}

    // Hold ids are told by it; it is known when the engine is made.
    void know(const wire::client_id& client) noexcept { client_ = &client; }

    void on_step(const engine::hold& of, engine::life_step what, std::chrono::nanoseconds took) override;
    void on_acquired(std::chrono::nanoseconds waited, engine::how granted_how) override;
    void on_reentered() override;
    void on_refused() override;
    void on_released(std::chrono::nanoseconds held) override;
    void on_renewed() override;
    void on_renewal_failed(const failure& why) override;
    void on_lost(const std::string& lock, errc why) override;
    void on_support(const std::string& lock, engine::support_now what, engine::support_count count_of) override;

    void on_link_up(const std::string& server, const std::string& version);
    void on_link_down(const failure& why);
    // The server refuses HELLO 3.
    void on_resp2(const redis::server_settings& server);
    void on_wakes_refused(const failure& why);
    void on_trouble(std::string text) { log(log_level::warning, std::move(text)); }
    void on_thread_exit_holding();
    // From any thread.
    void on_local_grants(std::uint64_t grants, std::uint64_t passes, std::uint64_t give_backs);
    void on_given_back(std::chrono::nanoseconds unused);
    void on_destroyed_while_locked(const std::string& name);

private:
    void log(log_level level, std::string text);
    void count_step(const engine::hold& of, engine::life_step what, std::chrono::nanoseconds took);
    void trace_step(const engine::hold& of, engine::life_step what, std::chrono::nanoseconds took);

    const std::shared_ptr<metrics> metrics_;
    const std::function<void(log_level, const std::string&)> log_;
    const std::function<void(const trace_event&)> trace_;
    const wire::client_id* client_ = nullptr;
    api::notifier& notifier_;
};

}  // namespace holdfast::api
