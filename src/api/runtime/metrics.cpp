#include <holdfast/metrics.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace holdfast {

void latency_histogram::add(std::chrono::nanoseconds took) noexcept {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(took.count() / 1000, 0));
    const auto bucket = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(us)), buckets - 1);
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_us_.fetch_add(us, std::memory_order_relaxed);
}

latency_histogram::snapshot latency_histogram::read() const noexcept {
    snapshot out;
    for (std::size_t i = 0; i < buckets; ++i) {
        out.counts[i] = counts_[i].load(std::memory_order_relaxed);
        out.count += out.counts[i];
    }
    out.sum = std::chrono::microseconds(static_cast<std::int64_t>(sum_us_.load(std::memory_order_relaxed)));
    return out;
}

std::chrono::microseconds latency_histogram::snapshot::quantile(double q) const noexcept {
    if (count == 0) return std::chrono::microseconds(0);
    const auto rank = static_cast<std::uint64_t>(std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
        seen += counts[i];
        if (seen >= std::max<std::uint64_t>(rank, 1)) return std::chrono::microseconds(std::int64_t{1} << i);
    }
    return std::chrono::microseconds(std::int64_t{1} << (buckets - 1));
}

}  // namespace holdfast
