#include "cli/bench/latency_counts.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace holdfast::cli {

// The first 32 buckets are a nanosecond wide each, the next 32 too, then two, four and so on.
std::size_t latency_counts::bucket_of(std::uint64_t ns) noexcept {
    if (ns < per_octave) return static_cast<std::size_t>(ns);
    const auto shift = static_cast<unsigned>(std::bit_width(ns)) - static_cast<unsigned>(std::bit_width(per_octave));
    return (shift + 1) * per_octave + static_cast<std::size_t>((ns >> shift) - per_octave);
}

std::uint64_t latency_counts::begin_of(std::size_t bucket) noexcept {
    if (bucket < per_octave) return bucket;
    const std::size_t shift = bucket / per_octave - 1;
    return static_cast<std::uint64_t>(per_octave + bucket % per_octave) << shift;
}

void latency_counts::add(duration took) noexcept {
    took = std::max(took, duration(0));
    ++counts_[bucket_of(static_cast<std::uint64_t>(took.count()))];
    ++count_;
    sum_ += took;
    smallest_ = std::min(smallest_, took);
    largest_ = std::max(largest_, took);
}

void latency_counts::add(const latency_counts& others) noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += others.counts_[i];
    count_ += others.count_;
    sum_ += others.sum_;
    smallest_ = std::min(smallest_, others.smallest_);
    largest_ = std::max(largest_, others.largest_);
}

latency_counts::duration latency_counts::mean() const noexcept {
    return count_ == 0 ? duration(0) : sum_ / static_cast<std::int64_t>(count_);
}

latency_counts::duration latency_counts::quantile(double part) const noexcept {
    const auto rank = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i + 1 < counts_.size(); ++i) {
        seen += counts_[i];
        if (seen >= std::max<std::uint64_t>(rank, 1)) {
            return std::clamp(duration(static_cast<std::int64_t>(begin_of(i + 1)) - 1), smallest(), largest_);
        }
    }
    return largest_;
}

std::vector<latency_counts::bar> latency_counts::bars() const {
    constexpr std::size_t per_bar = per_octave / 2;
    std::vector<bar> result;
    for (std::size_t first = 0; first + per_bar < counts_.size(); first += per_bar) {
        bar next{duration(begin_of(first)), duration(begin_of(first + per_bar)), 0};
        for (std::size_t i = first; i < first + per_bar; ++i) next.count += counts_[i];
        if (next.count > 0 || !result.empty()) result.push_back(next);
    }
    while (!result.empty() && result.back().count == 0) result.pop_back();
    return result;
}

}  // namespace holdfast::cli
