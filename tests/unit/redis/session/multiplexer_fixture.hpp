// A multiplexer whose bytes the test moves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "redis/session/multiplexer.hpp"
#include "unit/redis/session/recorded_command.hpp"

namespace holdfast::redis::testing {

inline constexpr script say{"say", "0123456789012345678901234567890123456789", "return ARGV[1]"};

class multiplexer_fixture : public ::testing::Test {
protected:
    multiplexer_fixture() { wires.open_gate(); }

    recorded_command make(const std::string& name) { return {log, name}; }
    recorded_command make_script(const std::string& argument) {
        recorded_command made(log, argument);
        std::string& payload = made.script_payload(say, 2);
        payload = bulk("0") + bulk(argument);
        return made;
    }

    std::string write() {
        std::string bytes(wires.begin_write(now));
        wires.end_write();
        return bytes;
    }

    std::optional<failure> receive(std::string_view bytes) {
        const std::span<char> room = wires.prepare(bytes.size());
        std::copy(bytes.begin(), bytes.end(), room.begin());
        wires.commit(bytes.size());
        return wires.deliver(pushes, now);
    }

    void lose_link() {
        wires.link_down({errc::unreachable, "gone"}, now);
        wires.link_up();
        wires.open_gate();
    }

    static std::string eval(const std::string& argument) { return encoded({"EVAL", say.text, "0", argument}); }
    static std::string evalsha(const std::string& argument) { return encoded({"EVALSHA", say.sha1, "0", argument}); }

    instant now{std::chrono::seconds(1)};
    event_log log;
    recorded_pushes pushes{log};
    multiplexer wires;
};

}  // namespace holdfast::redis::testing
