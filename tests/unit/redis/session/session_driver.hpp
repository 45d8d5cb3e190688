// Plays the driver and the server of a session, in virtual time.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "redis/session/session.hpp"
#include "unit/redis/session/recorded_command.hpp"

namespace holdfast::redis::testing {

class recorded_session_events : public session_listener {
public:
    explicit recorded_session_events(event_log& log) : log_(log) {}
    void on_link_up(const server_facts&, instant) override { log_.push_back("up"); }
    void on_link_down(const failure& why, instant) override { log_.push_back("down!" + name_of(why.code)); }
    void on_subscription_refused(const failure& why, instant) override {
        log_.push_back("refused!" + name_of(why.code));
    }
    void on_push(const reply_view& message, instant) override {
        log_.push_back("push: " + std::string(message.size() > 2 ? message[2].text() : message[0].text()));
    }

private:
    event_log& log_;
};

/// What a server says about itself and the link.
struct fake_server_facts {
    std::string version = "7.0.15";
    std::string role = "master";
    std::string mode = "standalone";
    int client_id = 7;
    std::string address = "127.0.0.1:5000";
    std::string run_id = "run-one";
    int uptime_s = -1;  // not told
};

inline std::string hello_answer(const fake_server_facts& facts) {
    return "%4\r\n" + bulk("version") + bulk(facts.version) + bulk("role") + bulk(facts.role) + bulk("mode") +
           bulk(facts.mode) + bulk("id") + ":" + std::to_string(facts.client_id) + "\r\n";
}

inline std::string greeting_answers(const fake_server_facts& facts) {
    return hello_answer(facts) +
           bulk("id=" + std::to_string(facts.client_id) + " addr=" + facts.address + " laddr=127.0.0.1:1 fd=8\n") +
           bulk("# Server\r\nredis_version:7.0.15\r\nrun_id:" + facts.run_id + "\r\ntcp_port:1\r\n" +
                (facts.uptime_s < 0 ? "" : "uptime_in_seconds:" + std::to_string(facts.uptime_s) + "\r\n"));
}

class session_driver {
public:
    explicit session_driver(std::string_view url = "redis://h") : subject(parse_url(url), events, 42) {}
    session_driver(server_settings settings, session_listener& told) : subject(std::move(settings), told, 42) {}

    /// Carries out the wishes of the session; returns what it sent.
    std::string pump() {
        if (subject.take_hang_up_wish()) {
            ++hang_ups;
            connecting = false;
        }
        if (subject.take_connect_wish()) {
            ++connects;
            connecting = true;
        }
        std::string sent;
        while (subject.has_output()) {
            sent += subject.begin_write(now);
            subject.end_write();
        }
        return sent;
    }

    /// Bytes from the server; returns what the session sends in answer.
    std::string receive(std::string_view bytes) {
        const std::span<char> room = subject.prepare(bytes.size());
        std::copy(bytes.begin(), bytes.end(), room.begin());
        subject.received(bytes.size(), now);
        return pump();
    }

    std::string tick() {
        subject.on_timer(now);
        return pump();
    }

    /// Waits for the deadline of the session, and calls on_timer().
    std::string sleep_until_due() {
        now = std::max(now, subject.deadline());
        return tick();
    }

    /// Waits for the wish to connect, then connects; returns the first burst of the greeting.
    std::string connect() {
        for (int i = 0; !connecting && i < 3; ++i) sleep_until_due();
        connecting = false;
        subject.connected(now);
        return pump();
    }

    /// Connects and greets; returns what is sent then.
    std::string greet(const fake_server_facts& facts = {}) {
        connect();
        return receive(greeting_answers(facts));
    }

    void fail(errc code = errc::unreachable) {
        subject.failed({code, "the test says so"}, now);
        pump();
    }

    void submit(command& request) {
        subject.submit(request, now);
        pump();
    }

    instant now{std::chrono::seconds(1000)};
    event_log log;
    recorded_session_events events{log};
    session subject;
    int connects = 0;
    int hang_ups = 0;
    bool connecting = false;  // wanted, and neither connected() nor failed() yet
};

}  // namespace holdfast::redis::testing
