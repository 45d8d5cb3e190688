// In the place of src/base/boot_clock.hpp: time stands still in a run, because a run decides nothing by time.
#pragma once

#include "base/clock.hpp"

namespace holdfast {

inline instant boot_now() noexcept {
    return instant(std::chrono::hours(1));
}

}  // namespace holdfast
