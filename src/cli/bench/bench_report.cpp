#include "cli/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace holdfast::cli {
namespace {

using fractional_seconds = std::chrono::duration<double>;

constexpr std::size_t picture_columns = 48;

std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
    return text;
}

double rate(const measurement& one) {
    return static_cast<double>(one.latency.count()) / std::max(fractional_seconds(one.took).count(), 1e-9);
}

// On each server.
double per_cycle(std::uint64_t figure, const measurement& one) {
    const std::uint64_t cycles = std::max<std::uint64_t>(one.latency.count(), 1);
    return static_cast<double>(figure) / static_cast<double>(cycles * one.servers);
}

double microseconds_of(std::chrono::nanoseconds time) {
    return std::round(static_cast<double>(time.count()) / 100) / 10;
}

// A bar that is exact to an eighth of a column.
std::string drawn(double columns) {
    constexpr std::array<std::string_view, 8> pieces{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const auto eighths = static_cast<std::size_t>(std::lround(std::max(columns, 0.0) * 8));
    std::string bar;
    for (std::size_t i = 0; i < eighths / 8; ++i) bar += "█";
    bar += pieces[eighths % 8];
    return bar.empty() && columns > 0 ? "▏" : bar;
}

std::string picture(const measurement& one, const palette& colours) {
    const auto bars = one.latency.bars();
    const std::uint64_t most = bars.empty() ? 1 : std::ranges::max(bars, {}, &latency_counts::bar::count).count;
    const auto total = static_cast<double>(std::max<std::uint64_t>(one.latency.count(), 1));
    const auto is_seen = [total](const latency_counts::bar& bar) {
        return static_cast<double>(bar.count) >= total / 1000;
    };
    std::string text = fmt::format("{}  {}\n", colours.paint(emphasis::bold, text_of(one.which).name),
                                   colours.paint(emphasis::dim, text_of(one.which).meaning));
    const auto last = std::find_if(bars.rbegin(), bars.rend(), is_seen).base();
    for (auto bar = std::ranges::find_if(bars, is_seen); bar < last; ++bar) {
        const double share = static_cast<double>(bar->count) / total;
        const double columns = static_cast<double>(bar->count) / static_cast<double>(most) * picture_columns;
        const std::string block = drawn(columns);
        text += fmt::format("  {:>9}  {}{:>{}} {:5.1f}%\n", "<" + short_time(bar->below),
                            colours.paint(emphasis::good, block), "", picture_columns - columns_of(block), share * 100);
    }
    return text;
}

}  // namespace

std::string short_time(std::chrono::nanoseconds time) {
    const auto ns = static_cast<double>(time.count());
    if (ns < 1e3) return fmt::format("{:.0f}ns", ns);
    if (ns < 1e6) return fmt::format("{:.0f}µs", ns / 1e3);
    if (ns < 1e9) return fmt::format("{:.2f}ms", ns / 1e6);
    return fmt::format("{:.2f}s", ns / 1e9);
}

std::string progress_line(workload which, double part, std::uint64_t cycles) {
    constexpr int width = 32;
    const int done = static_cast<int>(std::clamp(part, 0.0, 1.0) * width);
    return fmt::format("{:<12} [{:#<{}}{:.<{}}] {:3.0f}%  {} cycles", text_of(which).name, "", done, "", width - done,
                       std::clamp(part, 0.0, 1.0) * 100, grouped(cycles));
}

std::string report(const std::vector<measurement>& all, const palette& colours) {
    using enum table::align;
    table figures({left, right, right, right, right, right, right, right});
    figures.add_heading({"WORKLOAD", "CYCLES/S", "P50", "P90", "P99", "P99.9", "MAX", "COMMANDS/CYCLE"},
                        emphasis::bold);
    for (const measurement& one : all) {
        const auto part = [&one](double q) { return cell{short_time(one.latency.quantile(q))}; };
        figures.add({{std::string(text_of(one.which).name)},
                     {grouped(static_cast<std::uint64_t>(rate(one)))},
                     part(0.5),
                     part(0.9),
                     part(0.99),
                     part(0.999),
                     {short_time(one.latency.largest())},
                     {one.effort ? fmt::format("{:.2f}", per_cycle(one.effort->commands, one)) : "not told"}});
    }
    std::string text = figures.text(colours);
    for (const measurement& one : all) text += "\n" + picture(one, colours);
    return text;
}

json to_json(const measurement& one) {
    json bars = json::array();
    for (const auto& bar : one.latency.bars()) {
        bars.push_back(
            {{"from_us", microseconds_of(bar.from)}, {"below_us", microseconds_of(bar.below)}, {"count", bar.count}});
    }
    const auto part = [&one](double q) { return microseconds_of(one.latency.quantile(q)); };
    const json latency{{"min", microseconds_of(one.latency.smallest())},
                       {"mean", microseconds_of(one.latency.mean())},
                       {"p50", part(0.5)},
                       {"p90", part(0.9)},
                       {"p99", part(0.99)},
                       {"p99_9", part(0.999)},
                       {"max", microseconds_of(one.latency.largest())}};
    return {{"workload", text_of(one.which).name},
            {"servers", one.servers},
            {"cycles", one.latency.count()},
            {"took_ms", std::chrono::round<std::chrono::milliseconds>(one.took).count()},
            {"cycles_per_second", std::round(rate(one) * 10) / 10},
            {"latency_us", latency},
            {"commands_per_cycle", one.effort ? json(per_cycle(one.effort->commands, one)) : json()},
            {"calls_per_cycle", one.effort ? json(per_cycle(one.effort->calls, one)) : json()},
            {"histogram", std::move(bars)}};
}

}  // namespace holdfast::cli
