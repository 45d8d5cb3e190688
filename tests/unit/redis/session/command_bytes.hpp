// The bytes of a script's command, without sending it.
#pragma once

#include <string>

#include "redis/session/multiplexer.hpp"
#include "unit/redis/session/recorded_command.hpp"

namespace holdfast::redis::testing {

inline std::string bytes_of(const command& request) {
    event_log log;
    recorded_command copy(log, "copy");
    copy.copy_script(request);
    multiplexer wires;
    wires.link_up();
    wires.open_gate();
    wires.submit(copy);
    std::string bytes(wires.begin_write(instant{}));
    wires.end_write();
    wires.link_down({errc::unreachable, "the end"}, instant{});
    return bytes;
}

}  // namespace holdfast::redis::testing
