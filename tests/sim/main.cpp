// holdfast-sim runs simulated scenarios. `--seed N --trace` prints the events of one, `--seeds N` runs many.
// `--explore SCOPE` tries every order of events of a small world instead.

#include <unistd.h>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "explore/command.hpp"
#include "world/campaign.hpp"

namespace {

using namespace holdfast::sim;
using steady = std::chrono::steady_clock;

struct settings {
    campaign_options campaign;
    bool trace = false;
    explore::command_options explored;  // a scope: no scenarios
};

int usage() {
    std::fputs(
        "usage: holdfast-sim [--seeds N] [--first-seed N] [--jobs N] [--counted N] [--all] [--replicated] [--cluster] "
        "[--polls] [--watchers]\n"
        "       holdfast-sim --seed N [--trace] [--replicated] [--cluster] [--polls] [--watchers]\n"
        "       holdfast-sim --explore list|all|SCOPE,... [--schedules N] [--jobs N] [--mutant NAME|all]\n"
        "                    [--waits N] [--deviations N] [--horizon MS]\n"
        "       holdfast-sim --explore SCOPE --schedule N,N,... [--mutant NAME]\n",
        stderr);
    return 2;
}

bool read(int argc, char** argv, settings& out) {
    out.campaign.jobs = std::max(1U, std::thread::hardware_concurrency());
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--trace") {
            out.trace = true;
            continue;
        }
        if (word == "--replicated") {
            out.campaign.scenario.replicated = true;
            continue;
        }
        if (word == "--cluster") {
            out.campaign.scenario.cluster = scenario_options::clusters::always;
            continue;
        }
        if (word == "--polls") {
            out.campaign.scenario.polls = scenario_options::polling::always;
            continue;
        }
        if (word == "--semaphores") {
            out.campaign.scenario.semaphores = scenario_options::counting::always;
            continue;
        }
        if (word == "--watchers") {
            out.campaign.scenario.watchers = scenario_options::watching::always;
            continue;
        }
        if (word == "--all") {
            out.campaign.then = campaign_options::after_violation::go_on;
            continue;
        }
        if (i + 1 == argc) return false;
        if (word == "--explore" || word == "--schedule" || word == "--mutant") {
            std::string& given = word == "--explore"    ? out.explored.scope
                                 : word == "--schedule" ? out.explored.schedule
                                                        : out.explored.mutant;
            given = argv[++i];
            continue;
        }
        const std::string_view digits = argv[++i];
        std::uint64_t number = 0;
        const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (wrong != std::errc() || end != digits.data() + digits.size()) {
            std::fprintf(stderr, "holdfast-sim: %s wants a whole number, not '%s'\n", argv[i - 1], argv[i]);
            return false;
        }
        if (word == "--seeds") {
            out.campaign.seeds = number;
        } else if (word == "--first-seed") {
            out.campaign.first_seed = number;
        } else if (word == "--counted") {
            out.campaign.counted = number;
        } else if (word == "--waits") {
            out.explored.most_waits = static_cast<unsigned>(number);
        } else if (word == "--deviations") {
            out.explored.most_deviations = static_cast<unsigned>(number);
        } else if (word == "--horizon") {
            out.explored.horizon_ms = static_cast<unsigned>(number);
        } else if (word == "--schedules") {
            out.explored.most_schedules = number;
        } else if (word == "--jobs") {
            out.campaign.jobs = static_cast<unsigned>(std::max<std::uint64_t>(number, 1));
        } else if (word == "--seed") {
            out.campaign.first_seed = number;
            out.campaign.seeds = 1;
            out.campaign.jobs = 1;
        } else {
            return false;
        }
    }
    return true;
}

double seconds_since(steady::time_point begin) {
    return std::chrono::duration<double>(steady::now() - begin).count();
}

void show_progress(std::uint64_t done, std::uint64_t seeds, double took) {
    constexpr std::uint64_t width = 30;
    const std::string bar(static_cast<std::size_t>(width * done / seeds), '#');
    std::fprintf(stderr, "\r[%-*s] %llu of %llu seeds, %.0f per second ", static_cast<int>(width), bar.c_str(),
                 static_cast<unsigned long long>(done), static_cast<unsigned long long>(seeds),
                 static_cast<double>(done) / took);
}

void summarize(const campaign_result& all, double took) {
    std::printf(
        "%llu scenarios in %.1f s: %.0f seeds per second; %.1f hours simulated, %llu holds, %llu script calls, %llu "
        "takeovers\n",
        static_cast<unsigned long long>(all.scenarios), took, static_cast<double>(all.scenarios) / took,
        std::chrono::duration<double>(all.simulated).count() / 3600, static_cast<unsigned long long>(all.holds),
        static_cast<unsigned long long>(all.scripts), static_cast<unsigned long long>(all.takeovers));
    for (std::size_t i = 0; i < fault_kinds; ++i) {
        std::printf("  %-20s %llu\n", std::string(to_string(static_cast<fault>(i))).c_str(),
                    static_cast<unsigned long long>(all.faults[i]));
    }
}

// Covers the scenarios in which lines were counted.
void summarize_lines(const campaign_result& all) {
    std::size_t whole = 0;
    for (const auto& [script, lines] : all.lines) {
        const auto& missed = all.missed.at(script);
        if (missed.empty()) {
            ++whole;
            continue;
        }
        std::printf("  %-20s %zu of %zu lines ran", script.c_str(), lines.size() - missed.size(), lines.size());
        for (const int line : missed) std::printf(" -%d", line);
        std::printf("\n");
    }
    const char* const which = whole == all.lines.size() ? "" : "the other ";
    if (whole != 0) std::printf("  every line of %s%zu scripts ran\n", which, whole);
}

}  // namespace

int main(int argc, char** argv) {
    settings given;
    if (!read(argc, argv, given)) return usage();
    if (!given.explored.scope.empty()) {
        given.explored.jobs = given.campaign.jobs;
        return explore::run(given.explored);
    }
    const auto begin = steady::now();
    const std::uint64_t seeds = given.campaign.seeds;
    if (given.trace) given.campaign.scenario.trace = [](const std::string& line) { std::puts(line.c_str()); };
    if (isatty(STDERR_FILENO) != 0 && seeds > 1) {
        given.campaign.progress = [begin, seeds](std::uint64_t done) {
            if (done % 20 == 0 || done == seeds) show_progress(done, seeds, seconds_since(begin));
        };
    }
    const campaign_result all = run_campaign(given.campaign);
    if (given.campaign.progress) std::fputs("\r\033[K", stderr);
    summarize(all, seconds_since(begin));
    if (given.campaign.counted != 0) summarize_lines(all);
    if (!all.violation) return 0;
    for (const auto& [seed, verdict] : all.violations)
        std::printf("  %llu: %s\n", static_cast<unsigned long long>(seed), verdict.c_str());
    const scenario_options& scenario = given.campaign.scenario;
    const bool clusters_only = scenario.cluster == scenario_options::clusters::always;
    std::printf("VIOLATION at seed %llu: %s\n  replay: holdfast-sim --seed %llu --trace%s%s\n",
                static_cast<unsigned long long>(all.violation->seed), all.violation->verdict.c_str(),
                static_cast<unsigned long long>(all.violation->seed), scenario.replicated ? " --replicated" : "",
                clusters_only ? " --cluster" : "");
    return 1;
}
