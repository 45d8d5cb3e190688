// Counts and logs the events of the engine and the connections. Almost free if neither is enabled.
#pragma once

#include "api/runtime/notifier.hpp"
#include "engine/engine.hpp"

#include <holdfast/options.hpp>

#include <string>

namespace holdfast::api {

class watcher final : public engine::observer {
public:
    watcher(const client_options& options, api::notifier& notifier)
        : metrics_(options.metrics), log_(options.log), notifier_(notifier) {}

    void on_acquired(std::chrono::nanoseconds waited, engine::how got) override;
    void on_reentered() override;
    void on_refused() override;
    void on_released(std::chrono::nanoseconds held) override;
    void on_renewed() override;
    void on_renewal_failed(const failure& why) override;
    void on_lost(const std::string& lock, errc why) override;
    void on_votes(const std::string& lock, engine::votes_now what, engine::vote_count count_of) override;

    void on_link_up(const std::string& server, const std::string& version);
    void on_link_down(const failure& why);
    void on_thread_exit_holding();
    void on_destroyed_while_locked(const std::string& name);

private:
    void log(log_level level, std::string text);

    const std::shared_ptr<metrics> metrics_;
    const std::function<void(log_level, const std::string&)> log_;
    api::notifier& notifier_;
};

}  // namespace holdfast::api
