#include "base/utf8.hpp"

#include <holdfast/metrics.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

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

// --- by name

struct named_metrics::table {
    explicit table(std::size_t most) : most_names(most) {}

    const std::size_t most_names;
    std::mutex mutex;
    std::map<std::string, lock_metrics, std::less<>> figures;
    lock_metrics others;
    bool has_others = false;
};

named_metrics::named_metrics(std::size_t most_names) : table_(std::make_unique<table>(most_names)) {}

named_metrics::~named_metrics() = default;

lock_metrics& named_metrics::of(std::string_view name) {
    const std::lock_guard guard(table_->mutex);
    if (const auto known = table_->figures.find(name); known != table_->figures.end()) return known->second;
    if (table_->figures.size() < table_->most_names) return table_->figures[std::string(name)];
    table_->has_others = true;
    return table_->others;
}

void named_metrics::for_each(const std::function<void(std::string_view, const lock_metrics&)>& visit) const {
    // Names are added, never removed, so what was seen stays; `visit` may take its time.
    std::vector<std::pair<std::string_view, const lock_metrics*>> all;
    {
        const std::lock_guard guard(table_->mutex);
        for (const auto& [name, figures] : table_->figures) all.emplace_back(name, &figures);
        if (table_->has_others) all.emplace_back(std::string_view(), &table_->others);
    }
    for (const auto& [name, figures] : all) visit(name, *figures);
}

// --- for Prometheus

namespace {

std::string label_of(std::string_view name) {
    std::string text;
    const bool is_text = is_utf8(name);
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\\' || c == '"') text += '\\';
        text += byte < 0x20 || byte == 0x7f || (byte > 0x7f && !is_text) ? '_' : c;
    }
    return "lock=\"" + text + "\"";
}

// Seconds of 2^n microseconds, exactly.
std::string seconds_of(std::uint64_t us) {
    const std::string digits = std::to_string(us % 1'000'000);
    return std::to_string(us / 1'000'000) + "." + std::string(6 - digits.size(), '0') + digits;
}

class prometheus_page {
public:
    explicit prometheus_page(const metrics& all) {
        all.by_name.for_each(
            [this](std::string_view name, const lock_metrics& one) { locks_.emplace_back(label_of(name), &one); });
    }

    void add(const char* name, const char* type, const char* help, std::int64_t value) {
        head(name, type, help);
        text += std::string(name) + " " + std::to_string(value) + "\n";
    }
    template <typename Figure>
    void add_by_name(const char* name, const char* type, const char* help, Figure lock_metrics::*figure) {
        head(name, type, help);
        for (const auto& [label, one] : locks_) {
            text += std::string(name) + "{" + label + "} " + std::to_string((one->*figure).load()) + "\n";
        }
    }
    // Every third bucket: from 128 us to four and a half minutes by factors of eight.
    void add_by_name(const char* name, const char* help, latency_histogram lock_metrics::*figure) {
        head(name, "histogram", help);
        for (const auto& [label, one] : locks_) {
            const latency_histogram::snapshot now = (one->*figure).read();
            std::uint64_t below = 0;
            for (std::size_t i = 0; i < latency_histogram::buckets; ++i) {
                below += now.counts[i];
                if (i < 7 || i > 28 || (i - 7) % 3 != 0) continue;
                text += std::string(name) + "_bucket{" + label + ",le=\"" + seconds_of(std::uint64_t{1} << i) + "\"} " +
                        std::to_string(below) + "\n";
            }
            text += std::string(name) + "_bucket{" + label + ",le=\"+Inf\"} " + std::to_string(now.count) + "\n" +
                    name + "_sum{" + label + "} " + seconds_of(static_cast<std::uint64_t>(now.sum.count())) + "\n" +
                    name + "_count{" + label + "} " + std::to_string(now.count) + "\n";
        }
    }

    std::string text;

private:
    void head(const char* name, const char* type, const char* help) {
        text += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
    }

    std::vector<std::pair<std::string, const lock_metrics*>> locks_;
};

}  // namespace

std::string prometheus_text(const metrics& all) {
    prometheus_page page(all);
    const auto count = [](const std::atomic<std::uint64_t>& of) { return static_cast<std::int64_t>(of.load()); };
    page.add("holdfast_client_links_total", "counter", "How often a connection came up.", count(all.links));
    page.add("holdfast_client_renewals_total", "counter", "Renewals that the server confirmed.", count(all.renewals));
    page.add("holdfast_client_failed_renewals_total", "counter", "Renewals that are repeated.",
             count(all.failed_renewals));
    page.add("holdfast_client_votes_lost_total", "counter", "How often fewer servers than before backed a hold.",
             count(all.votes_lost));
    page.add_by_name("holdfast_client_waiting", "gauge", "Acquisitions that have not ended.", &lock_metrics::waiting);
    page.add_by_name("holdfast_client_held", "gauge", "Holds that have not been released.", &lock_metrics::held);
    page.add_by_name("holdfast_client_acquired_total", "counter", "Acquisitions that acquired the lock.",
                     &lock_metrics::acquired);
    page.add_by_name("holdfast_client_handed_over_total", "counter", "Of these, those handed over to a waiter.",
                     &lock_metrics::handed_over);
    page.add_by_name("holdfast_client_refused_total", "counter", "Acquisitions that failed.", &lock_metrics::refused);
    page.add_by_name("holdfast_client_losses_total", "counter", "Holds that ended before they were released.",
                     &lock_metrics::losses);
    page.add_by_name("holdfast_client_acquire_wait_seconds", "From the request to the grant.",
                     &lock_metrics::acquire_wait);
    page.add_by_name("holdfast_client_hold_time_seconds", "From the grant to the release.", &lock_metrics::hold_time);
    return page.text;
}

}  // namespace holdfast
