// Time as the sans-I/O parts see it: a number handed to them, on a clock that also runs while the machine sleeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>

namespace holdfast {

// Never asked for the time by anything below src/api: no now() here on purpose.
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
