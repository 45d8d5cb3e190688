// The present instant. Only the outer layers read the clock; sans-I/O layers get `now` as an argument.
#pragma once

#include "base/clock.hpp"

namespace holdfast {

// CLOCK_BOOTTIME: unlike CLOCK_MONOTONIC it runs on while the machine sleeps, as leases on the server do.
instant boot_now() noexcept;

}  // namespace holdfast
