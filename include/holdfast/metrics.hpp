// Counters and histograms of a client.
#pragma once

#include <holdfast/export.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace holdfast {

/// A histogram of durations. The bounds of its buckets double: bucket n counts durations below 2^n microseconds.
///
/// Thread safety: add() and read() may run at the same time.
class HOLDFAST_EXPORT latency_histogram {
public:
    /// The number of buckets. The last one also counts all longer durations.
    static constexpr std::size_t buckets = 40;

    /// The figures of one moment.
    struct snapshot {
        std::array<std::uint64_t, buckets> counts{};  ///< per bucket, not cumulative
        std::uint64_t count = 0;                      ///< of all buckets
        std::chrono::microseconds sum{0};             ///< of all durations

        /// An upper bound of the quantile `q` (0 to 1). Zero if nothing was counted.
        std::chrono::microseconds quantile(double q) const noexcept;
    };

    /// Counts one duration.
    void add(std::chrono::nanoseconds took) noexcept;
    /// The figures as they are now.
    snapshot read() const noexcept;

private:
    std::array<std::atomic<std::uint64_t>, buckets> counts_{};
    std::atomic<std::uint64_t> sum_us_{0};
};

/// Counters and histograms of one client or several. Pass it as `client_options::metrics` and read it at any time.
///
/// Thread safety: clients may count while you read. Every figure is exact, but figures read one after the other may be
/// of different moments.
struct HOLDFAST_EXPORT metrics {
    std::atomic<std::uint64_t> acquired{0};         ///< outermost acquisitions that acquired the lock
    std::atomic<std::uint64_t> handed_over{0};      ///< of these, how many were handed over to a waiter
    std::atomic<std::uint64_t> reentered{0};        ///< inner acquisitions
    std::atomic<std::uint64_t> refused{0};          ///< acquisitions that failed, for any reason
    std::atomic<std::uint64_t> released{0};         ///< outermost releases, including those of lost holds
    std::atomic<std::uint64_t> renewals{0};         ///< renewals that the server confirmed
    std::atomic<std::uint64_t> failed_renewals{0};  ///< renewals that were not confirmed and are repeated
    std::atomic<std::uint64_t> losses{0};           ///< holds that ended before they were released
    /// How often fewer of several servers than before, or than there are, backed a hold.
    std::atomic<std::uint64_t> votes_lost{0};
    std::atomic<std::uint64_t> links{0};  ///< how often a connection came up; all but the first are reconnects
    latency_histogram acquire_wait;       ///< from the request to the grant
    latency_histogram hold_time;          ///< from the grant to the release
};

}  // namespace holdfast
