#include "support/stop_event.hpp"

#include <sys/eventfd.h>

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace holdfast::testing {

stop_event::stop_event() : event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (!event_) throw_errno("eventfd");
}

void stop_event::set() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void stop_event::clear() noexcept {
    std::uint64_t ignored;
    [[maybe_unused]] const ssize_t got = ::read(event_.get(), &ignored, sizeof ignored);
}

bool stop_event::is_set() const noexcept {
    pollfd waiting{.fd = event_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 0) == 1;
}

bool stop_event::sleep_for(std::chrono::milliseconds time) const {
    using clock = std::chrono::steady_clock;
    const clock::time_point end = clock::now() + time;
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
        pollfd waiting{.fd = event_.get(), .events = POLLIN, .revents = 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<long>(left, 0, 60'000)));
        if (ready == 1) return false;
        if (ready < 0 && errno != EINTR) throw_errno("poll");
        if (clock::now() >= end) return true;
    }
}

bool stop_event::wait_for(int fd, short events) const {
    for (;;) {
        pollfd waiting[2] = {{.fd = fd, .events = events, .revents = 0},
                             {.fd = event_.get(), .events = POLLIN, .revents = 0}};
        const int ready = ::poll(waiting, 2, -1);
        if (ready < 0 && errno != EINTR) throw_errno("poll");
        if (ready <= 0) continue;
        return waiting[1].revents == 0;
    }
}

}  // namespace holdfast::testing
