// The only source of randomness of a scenario: one seed, forked into independent streams.
//
// splitmix64: tiny, equally good from any seed, and identical on every machine (the distributions of <random> are not).
#pragma once

#include <chrono>
#include <cstdint>

#include "wire/hold_id.hpp"

namespace holdfast::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class random_stream final : public random_source {
public:
    explicit random_stream(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() override {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
        return mixed ^ (mixed >> 31U);
    }

    /// An independent stream for one part of the scenario: its draws do not change those of other parts.
    random_stream fork() { return random_stream(next()); }

    std::uint64_t below(std::uint64_t limit) { return next() % limit; }
    bool percent(unsigned part) { return below(100) < part; }

    struct span {
        nanoseconds from;
        nanoseconds to;
    };
    nanoseconds within(span limits) {
        const auto width = static_cast<std::uint64_t>((limits.to - limits.from).count());
        return limits.from + nanoseconds(static_cast<std::int64_t>(below(width + 1)));
    }

private:
    std::uint64_t state_;
};

}  // namespace holdfast::sim
