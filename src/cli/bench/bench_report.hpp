// What `holdfast bench` shows: figures in a table, latencies as a picture, all of it as JSON, and how far it is.
#pragma once

#include "cli/bench/bench.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/terminal/text.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

std::string report(const std::vector<measurement>& all, const palette& colours);
json to_json(const measurement& one);

// "contended    [########........]  50%  12,345 cycles", so many columns at most.
std::string progress_line(workload which, double part, std::uint64_t cycles);

// "850ns", "123µs", "4.56ms", "1.20s".
std::string short_time(std::chrono::nanoseconds time);

}  // namespace holdfast::cli
