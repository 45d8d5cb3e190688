// What a client counts while it works.
#pragma once

#include <holdfast/export.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace holdfast {

/// How long something took, in buckets that double: the n-th counts what took less than 2^n microseconds.
class HOLDFAST_EXPORT latency_histogram {
public:
    /// The last one counts all that took longer, too.
    static constexpr std::size_t buckets = 40;

    /// The figures of one moment, to calculate with.
    struct snapshot {
        std::array<std::uint64_t, buckets> counts{};  ///< by bucket, not cumulative
        std::uint64_t count = 0;                      ///< of all buckets
        std::chrono::microseconds sum{0};             ///< of all that was counted

        /// An upper bound of the given quantile (0 to 1); zero if nothing was counted.
        std::chrono::microseconds quantile(double q) const noexcept;
    };

    /// Counts something that took so long.
    void add(std::chrono::nanoseconds took) noexcept;
    /// The figures as they are now.
    snapshot read() const noexcept;

private:
    std::array<std::atomic<std::uint64_t>, buckets> counts_{};
    std::atomic<std::uint64_t> sum_us_{0};
};

/// Counters and histograms of one client or several. Give it to `client_options::metrics`, read it whenever you like.
///
/// Thread safety: reading and counting may happen at the same time; every figure is exact, but figures read
/// one after the other may be of different moments.
struct HOLDFAST_EXPORT metrics {
    std::atomic<std::uint64_t> acquired{0};         ///< outermost acquisitions that got the lock
    std::atomic<std::uint64_t> handed_over{0};      ///< of these, how many were pushed to a waiter
    std::atomic<std::uint64_t> reentered{0};        ///< inner acquisitions
    std::atomic<std::uint64_t> refused{0};          ///< acquisitions that did not get it, for whatever reason
    std::atomic<std::uint64_t> released{0};         ///< outermost releases, of lost holds too
    std::atomic<std::uint64_t> renewals{0};         ///< that the server confirmed
    std::atomic<std::uint64_t> failed_renewals{0};  ///< that were not confirmed, and tried again
    std::atomic<std::uint64_t> losses{0};           ///< holds that ended before they were released
    /// Times a hold was found to be backed by fewer of several servers than before, or than there are.
    std::atomic<std::uint64_t> votes_lost{0};
    std::atomic<std::uint64_t> links{0};  ///< times a connection came up; all but the first are reconnects
    latency_histogram acquire_wait;       ///< from the request to the grant
    latency_histogram hold_time;          ///< from the grant to the release
};

}  // namespace holdfast
