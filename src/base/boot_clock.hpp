// The present instant. Only the outer layers read the clock; sans-I/O layers get `now` as an argument.
#pragma once

#include "base/clock.hpp"

#include <ctime>

namespace holdfast {

// CLOCK_BOOTTIME: unlike CLOCK_MONOTONIC it runs on while the machine sleeps, as leases on the server do.
inline instant boot_now() noexcept {
    timespec ts{};
    ::clock_gettime(CLOCK_BOOTTIME, &ts);
    return instant(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

}  // namespace holdfast
