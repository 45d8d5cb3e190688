// What every benchmark here does alike: find its server, reduce samples, show figures and write them down.
//
// A figure compares holdfast with a floor, something below which nobody can get (a bare socket,
// redis-benchmark), measured in the same round on the same server. A machine that is busy with something else
// slows both; so the ratio is taken within each round, and its median over the rounds is what counts.
//
// The server is started by bench/run, which says where it is in HOLDFAST_BENCH_PORT and
// HOLDFAST_BENCH_SOCKET.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::bench {

struct server_place {
    std::uint16_t port = 0;   // on 127.0.0.1
    std::string socket_path;  // of the same server

    std::string tcp_url() const { return "redis://127.0.0.1:" + std::to_string(port); }
    std::string unix_url() const { return "unix://" + socket_path; }
};

inline server_place server_of_this_run() {
    const char* const port = std::getenv("HOLDFAST_BENCH_PORT");
    const char* const socket = std::getenv("HOLDFAST_BENCH_SOCKET");
    if (port == nullptr || socket == nullptr) {
        throw std::runtime_error(
            "no server to measure: run this by bench/run, or set HOLDFAST_BENCH_PORT and "
            "HOLDFAST_BENCH_SOCKET");
    }
    return {static_cast<std::uint16_t>(std::stoul(port)), socket};
}

// How long one call of `work` takes, in microseconds.
template <typename Work>
double microseconds(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    std::forward<Work>(work)();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

// The sample below which `percent` of the samples lie (nearest rank).
inline double percentile(std::vector<double> samples, double percent) {
    if (samples.empty()) throw std::runtime_error("a percentile of nothing");
    const auto rank = static_cast<std::size_t>(std::ceil(percent / 100.0 * static_cast<double>(samples.size())));
    const auto place = samples.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
    std::nth_element(samples.begin(), place, samples.end());
    return *place;
}

inline double median(std::vector<double> samples) {
    return percentile(std::move(samples), 50);
}

// One thing measured in several rounds, each against the floor of the same round.
class figure {
public:
    enum class better { higher, lower };

    struct meaning {
        std::string_view name;  // "connection.throughput"
        std::string_view unit;  // "requests/s"
        better direction = better::lower;
        double target = 0;  // what the ratio must reach, or not exceed
    };

    struct round {
        double holdfast = 0;
        double floor = 0;
    };

    explicit figure(meaning what) : what_(what) {}

    void add(round measured) {
        holdfast_.push_back(measured.holdfast);
        floor_.push_back(measured.floor);
        ratios_.push_back(measured.holdfast / measured.floor);
    }

    // A further number to write down beside, e.g. a p99. Not judged.
    void note(std::string name, double value) { notes_.emplace_back(std::move(name), value); }

    double ratio() const { return median(ratios_); }
    bool reached() const {
        return what_.direction == better::higher ? ratio() >= what_.target : ratio() <= what_.target;
    }

    void print() const {
        std::printf("%-28.*s %11.1f %11.1f  %5.3f  %5.3f..%5.3f  %s %.2f: %s   (%.*s, %zu rounds)\n", width(what_.name),
                    what_.name.data(), median(holdfast_), median(floor_), ratio(), lowest(), highest(),
                    what_.direction == better::higher ? ">=" : "<=", what_.target, reached() ? "yes" : "NO",
                    width(what_.unit), what_.unit.data(), ratios_.size());
        for (const auto& [name, value] : notes_) std::printf("    %-24s %11.2f\n", name.c_str(), value);
    }

    static void print_header() {
        std::printf("%-28s %11s %11s  %5s  %-12s  target\n", "", "holdfast", "floor", "ratio", "ratio's range");
    }

    // One line of JSON. Names and units are ours and need no escapes.
    std::string json() const {
        std::string out = "{\"bench\": \"" + std::string(what_.name) + '"';
        const auto number = [&out](std::string_view name, double value) {
            char text[64];
            std::snprintf(text, sizeof text, "%.6g", value);
            out.append(", \"").append(name).append("\": ").append(text);
        };
        number("holdfast", median(holdfast_));
        number("floor", median(floor_));
        number("ratio", ratio());
        number("ratio_min", lowest());
        number("ratio_max", highest());
        number("target", what_.target);
        number("rounds", static_cast<double>(ratios_.size()));
        for (const auto& [name, value] : notes_) number(name, value);
        return out + ", \"unit\": \"" + std::string(what_.unit) + "\"}";
    }

private:
    static int width(std::string_view text) { return static_cast<int>(text.size()); }
    double lowest() const { return *std::min_element(ratios_.begin(), ratios_.end()); }
    double highest() const { return *std::max_element(ratios_.begin(), ratios_.end()); }

    meaning what_;
    std::vector<double> holdfast_;
    std::vector<double> floor_;
    std::vector<double> ratios_;
    std::vector<std::pair<std::string, double>> notes_;
};

// Shows the figures, and appends them to FILE if the program was called with `--json FILE`: one object per
// line, so that several programs may write to one file.
inline void report(const std::vector<figure>& figures, int argc, char** argv) {
    double load = 0;
    ::getloadavg(&load, 1);
    figure::print_header();
    for (const figure& each : figures) each.print();
    std::printf("load average %.1f on %u processors\n", load, std::thread::hardware_concurrency());
    for (int i = 1; i + 1 < argc; ++i) {
        if (std::string_view(argv[i]) != "--json") continue;
        std::ofstream file(argv[i + 1], std::ios::app);
        for (const figure& each : figures) file << each.json() << '\n';
        if (!file.flush()) throw std::runtime_error(std::string("cannot write to ") + argv[i + 1]);
    }
}

}  // namespace holdfast::bench
