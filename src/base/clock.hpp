// Time as sans-I/O code sees it: an argument, on a clock that also runs while the machine sleeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>

namespace holdfast {

// It has no now() on purpose: nothing below src/api reads the clock.
struct boottime {
    using rep = std::int64_t;
    using period = std::nano;
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::time_point<boottime>;
    static constexpr bool is_steady = true;
};

using instant = boottime::time_point;

inline constexpr instant never = instant::max();

}  // namespace holdfast
