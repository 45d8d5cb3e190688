// The present instant. Only the outer layers ask; the sans-I/O ones are told.
#pragma once

#include "base/clock.hpp"

namespace holdfast {

// CLOCK_BOOTTIME: unlike CLOCK_MONOTONIC it goes on while the machine sleeps, as the leases on the server do.
instant boot_now() noexcept;

}  // namespace holdfast
