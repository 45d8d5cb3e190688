#include "cli/terminal/live.hpp"

#include "base/boot_clock.hpp"
#include "cli/terminal/system.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace holdfast::cli {

woken rest(signal_inbox& signals, std::chrono::milliseconds at_most, int input) {
    const instant until = boot_now() + at_most;
    for (;;) {
        while (const auto signal = signals.take()) {
            if (asks_to_end(*signal)) return woken::by_end;
            if (*signal == SIGTSTP) return woken::by_stop;
            if (*signal == SIGWINCH) return woken::by_resize;
        }
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boot_now()).count();
        if (left <= 0) return woken::by_time;
        // poll() leaves out a descriptor that is negative.
        std::array<pollfd, 2> events{{{signals.fd(), POLLIN, 0}, {input, POLLIN, 0}}};
        const int ready = ::poll(events.data(), events.size(), static_cast<int>(std::min<long long>(left, 60'000)));
        if (ready < 0 && errno != EINTR) throw_errno("poll");
        if (ready > 0 && events[1].revents != 0) return woken::by_input;
    }
}

}  // namespace holdfast::cli
