// Counters and histograms of a client.
#pragma once

#include <holdfast/export.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

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

/// The figures of the locks of one name.
struct lock_metrics {
    std::atomic<std::int64_t> waiting{0};       ///< acquisitions and upgrades that have not ended
    std::atomic<std::int64_t> held{0};          ///< holds that have not been released, lost ones included
    std::atomic<std::uint64_t> acquired{0};     ///< acquisitions and upgrades that acquired the lock
    std::atomic<std::uint64_t> handed_over{0};  ///< of these, how many were handed over to a waiter
    std::atomic<std::uint64_t> refused{0};      ///< acquisitions and upgrades that failed, for any reason
    std::atomic<std::uint64_t> losses{0};       ///< holds that ended before they were released
    latency_histogram acquire_wait;             ///< from the request to the grant
    latency_histogram hold_time;                ///< from the grant to the release
};

/// Figures by the name of the lock, for a bounded number of names. The first names that are used get figures of their
/// own, about 1 KB each; all later names share one more entry.
///
/// Thread safety: all functions may run at the same time.
class HOLDFAST_EXPORT named_metrics {
public:
    /// At most `most_names` names have figures of their own.
    explicit named_metrics(std::size_t most_names);
    ~named_metrics();
    named_metrics(const named_metrics&) = delete;
    named_metrics& operator=(const named_metrics&) = delete;

    /// The figures that count for this name. The reference stays valid.
    lock_metrics& of(std::string_view name);
    /// Calls `visit` with every name and its figures, sorted by name, and last, if there are any, with the figures of
    /// all other names and an empty name. No lock has an empty name.
    void for_each(const std::function<void(std::string_view name, const lock_metrics& figures)>& visit) const;

private:
    struct table;
    std::unique_ptr<table> table_;
};

/// Counters and histograms of one client or several. Pass it as `client_options::metrics` and read it at any time.
///
/// Thread safety: clients may count while you read. Every figure is exact, but figures read one after the other may be
/// of different moments.
struct HOLDFAST_EXPORT metrics {
    /// Figures of their own for at most `most_names` names of locks; see `by_name`.
    explicit metrics(std::size_t most_names = 100) : by_name(most_names) {}

    std::atomic<std::int64_t> waiting{0};           ///< acquisitions and upgrades that have not ended
    std::atomic<std::int64_t> held{0};              ///< holds that have not been released, lost ones included
    std::atomic<std::uint64_t> acquired{0};         ///< outermost acquisitions that acquired the lock
    std::atomic<std::uint64_t> handed_over{0};      ///< of these, how many were handed over to a waiter
    std::atomic<std::uint64_t> reentered{0};        ///< inner acquisitions
    std::atomic<std::uint64_t> refused{0};          ///< acquisitions that failed, for any reason
    std::atomic<std::uint64_t> released{0};         ///< outermost releases, including those of lost holds
    std::atomic<std::uint64_t> renewals{0};         ///< renewals that the server confirmed
    std::atomic<std::uint64_t> failed_renewals{0};  ///< renewals that were not confirmed and are repeated
    std::atomic<std::uint64_t> losses{0};           ///< holds that ended before they were released
    /// How often a hold lost the support of a server (majority setups only).
    std::atomic<std::uint64_t> votes_lost{0};
    std::atomic<std::uint64_t> links{0};  ///< how often a connection came up; all but the first are reconnects
    /// Acquisitions that a hold of the client served without asking a server (`keep`, `passes`). Not among `acquired`.
    std::atomic<std::uint64_t> local_grants{0};
    std::atomic<std::uint64_t> passes{0};      ///< of these, how many while others waited for the lock
    std::atomic<std::uint64_t> give_backs{0};  ///< holds that were given back because others wanted the lock
    latency_histogram acquire_wait;            ///< from the request to the grant
    latency_histogram hold_time;               ///< from the grant to the release
    latency_histogram kept_time;               ///< how long a kept hold was unused before it was given back
    named_metrics by_name;                     ///< the same by the name of the lock
};

/// The figures as text for Prometheus (version 0.0.4), for a program that has a page for it. The series are called
/// `holdfast_client_...`; those by name have the label `lock`, which is empty for all names without figures of their
/// own.
HOLDFAST_EXPORT std::string prometheus_text(const metrics& figures);

}  // namespace holdfast
