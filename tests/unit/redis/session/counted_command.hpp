// A request for replicas in tests.
#pragma once

#include <string>

#include "unit/redis/session/session_driver.hpp"

namespace holdfast::redis::testing {

/// Logs its answer, and keeps what on_shown() says.
class counted final : public recorded_command {
public:
    counted(event_log& log, const std::string& name) : recorded_command(log, name), log_(log), name_(name) {}
    void on_reply(const reply_view& reply, instant now) override {
        log_.push_back(name_ + "=" + std::to_string(reply.to_integer().value_or(-1)));
        if (afterwards) afterwards(now);
    }
    void on_shown(std::chrono::milliseconds left, instant asked_at) override {
        shown_left = left;
        shown_at = asked_at;
    }

    std::chrono::milliseconds shown_left{0};
    instant shown_at{};

private:
    event_log& log_;
    const std::string name_;
};

}  // namespace holdfast::redis::testing
