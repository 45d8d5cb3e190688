// Converts a wait of any unit to milliseconds. std::chrono overflows silently where a wait that means "for ever"
// (hours::max(), time_point::max()) is converted to a finer unit.
#pragma once

#include <chrono>

namespace holdfast::detail {

/// A wait of at least this length has no limit.
inline constexpr std::chrono::hours for_ever_from{24 * 365 * 100};
inline constexpr std::chrono::milliseconds for_ever = std::chrono::milliseconds::max();

template <typename Rep, typename Period>
constexpr std::chrono::milliseconds wait_time(std::chrono::duration<Rep, Period> wait) {
    if (wait <= wait.zero()) return std::chrono::milliseconds{0};
    if (std::chrono::duration<double>(wait) >= for_ever_from) return for_ever;
    return std::chrono::ceil<std::chrono::milliseconds>(wait);
}

}  // namespace holdfast::detail
