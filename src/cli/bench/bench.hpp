// Measures locks on the user's own server.
//
// A cycle is acquire and release, by the library as any program uses it: one client, as many threads as asked for.
// Every cycle that has begun when the time is over is finished and counted, so that what the server counted meanwhile,
// divided by the cycles, is exact. (If others use the server at the same time, theirs is in it.)
#pragma once

#include "cli/bench/latency_counts.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/inspect/servers/server_set.hpp"
#include "cli/terminal/signals.hpp"
#include "cli/terminal/text.hpp"
#include "wire/keys.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

enum class workload { uncontended, parallel, contended, read_mostly, quorum };

struct workload_text {
    workload which;
    std::string_view name;  // also for --workload
    std::string_view meaning;
};
// In the order of the enumeration.
inline constexpr std::array workload_texts{
    workload_text{workload::uncontended, "uncontended", "one thread, one lock that nobody else wants"},
    workload_text{workload::parallel, "parallel", "every thread a lock of its own"},
    workload_text{workload::contended, "contended", "every thread the same lock"},
    workload_text{workload::read_mostly, "read-mostly", "every thread the same read-write lock; one in twenty writes"},
    workload_text{workload::quorum, "quorum", "one thread, one lock, on all servers"}};
constexpr const workload_text& text_of(workload which) {
    return workload_texts[static_cast<std::size_t>(which)];
}

struct bench_terms {
    std::chrono::milliseconds time;  // for each workload
    unsigned threads = 16;
    std::string prefix = std::string(wire::default_prefix);
    std::chrono::milliseconds lease{std::chrono::seconds(30)};
};

// What the server did meanwhile; of several, all of them together.
struct server_effort {
    std::uint64_t commands = 0;  // that clients sent: calls of scripts
    std::uint64_t calls = 0;     // these, and all that the scripts called
};

struct measurement {
    workload which;
    std::chrono::nanoseconds took{0};
    latency_counts latency;               // of a whole cycle, waiting included
    std::optional<server_effort> effort;  // none: the server does not tell this user
    std::size_t servers = 1;
};

// Hears of what goes on, every tenth of a second: which workload, how far (0 to 1), how many cycles so far.
using bench_listener = std::function<void(workload, double, std::uint64_t)>;

// The keys it used are gone afterwards. Nothing if a signal asked to end. Throws holdfast::error if the server fails.
// Locks are acquired over `link`; `servers` are the servers behind it.
std::optional<measurement> measure(client& link, server_set& servers, workload which, const bench_terms& terms,
                                   signal_inbox& signals, const bench_listener& listener);

// Figures in a table, latencies as a picture.
std::string report(const std::vector<measurement>& all, const palette& colours);
json to_json(const measurement& one);

// "contended    [########........]  50%  12,345 cycles", so many columns at most.
std::string progress_line(workload which, double part, std::uint64_t cycles);

// "850ns", "123µs", "4.56ms", "1.20s".
std::string short_time(std::chrono::nanoseconds time);

}  // namespace holdfast::cli
