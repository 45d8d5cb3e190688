// Commands that log their results, and the bytes of answers.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/session/command.hpp"
#include "redis/session/command_writer.hpp"
#include "redis/session/multiplexer.hpp"

namespace holdfast::redis::testing {

using event_log = std::vector<std::string>;

inline std::string encoded(std::initializer_list<argument> words) {
    return encoded_command(words);
}

inline std::string bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

inline std::string name_of(errc code) {
    switch (code) {
        case errc::outcome_unknown:
            return "outcome_unknown";
        case errc::unreachable:
            return "unreachable";
        case errc::request_timed_out:
            return "request_timed_out";
        case errc::client_closed:
            return "client_closed";
        case errc::timed_out:
            return "timed_out";
        default:
            return std::to_string(static_cast<int>(code));
    }
}

/// Logs "name=text" for a reply and "name!code" for a failure, then calls `afterwards`.
class recorded_command : public command {
public:
    recorded_command(event_log& log, std::string name) : log_(log), name_(std::move(name)) {
        set_payload(encoded({name_}));
    }

    void on_reply(const reply_view& reply, instant now) override {
        std::string text(reply.text());
        if (reply.is_aggregate()) text = "[" + std::to_string(reply.size()) + "]";
        log_.push_back(name_ + "=" + text);
        if (afterwards) afterwards(now);
    }
    void on_failure(const failure& why, instant now) override {
        log_.push_back(name_ + "!" + name_of(why.code));
        last = why;
        if (afterwards) afterwards(now);
    }

    std::function<void(instant)> afterwards;
    failure last{};

private:
    event_log& log_;
    std::string name_;
};

/// Logs "push:" and the words of a push.
class recorded_pushes : public push_listener {
public:
    explicit recorded_pushes(event_log& log) : log_(log) {}
    void on_push(const reply_view& message, instant now) override {
        std::string text = "push:";
        for (const reply_view word : message) text += " " + std::string(word.text());
        log_.push_back(text);
        if (afterwards) afterwards(now);
    }
    std::function<void(instant)> afterwards;

private:
    event_log& log_;
};

}  // namespace holdfast::redis::testing
