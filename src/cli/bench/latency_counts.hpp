// How long many things took, in little space and with bounded error.
//
// Every power of two is cut into 32 equal buckets, so a figure read from here is at most 1/32 too large, whether it is
// of microseconds or of minutes; smallest, largest and mean are exact.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::cli {

class latency_counts {
public:
    using duration = std::chrono::nanoseconds;

    void add(duration took) noexcept;
    void add(const latency_counts& others) noexcept;

    std::uint64_t count() const noexcept { return count_; }
    // All zero if nothing was counted.
    duration smallest() const noexcept { return count_ == 0 ? duration(0) : smallest_; }
    duration largest() const noexcept { return largest_; }
    duration mean() const noexcept;
    // What the given part of them (0 to 1) did not exceed.
    duration quantile(double part) const noexcept;

    // For a picture: half of a power of two to a bar, from the first that has something to the last.
    struct bar {
        duration from;
        duration below;
        std::uint64_t count;
    };
    std::vector<bar> bars() const;

private:
    static constexpr std::size_t per_octave = 32;
    static constexpr std::size_t octaves = 59;  // all that 63 bits can be
    static std::size_t bucket_of(std::uint64_t ns) noexcept;
    static std::uint64_t begin_of(std::size_t bucket) noexcept;

    std::array<std::uint64_t, (octaves + 1) * per_octave> counts_{};
    std::uint64_t count_ = 0;
    duration sum_{0};
    duration smallest_ = duration::max();
    duration largest_{0};
};

}  // namespace holdfast::cli
