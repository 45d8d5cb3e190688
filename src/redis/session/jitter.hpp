// Random delays, so that many clients do not act at the same time. Seeded, so that a run can be repeated.
#pragma once

#include <chrono>
#include <cstdint>

namespace holdfast::redis {

class jitter {
public:
    explicit jitter(std::uint64_t seed) noexcept : state_(seed) {}

    // Half of the result is fixed, half is random.
    std::chrono::nanoseconds spread(std::chrono::nanoseconds whole) noexcept {
        const auto half = static_cast<std::uint64_t>(whole.count()) / 2;
        return std::chrono::nanoseconds(static_cast<std::int64_t>(half + next() % (half + 1)));
    }

    // splitmix64
    std::uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
        return mixed ^ (mixed >> 31U);
    }

private:
    std::uint64_t state_;
};

}  // namespace holdfast::redis
