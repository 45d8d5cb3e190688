#include "explore/command.hpp"

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

#include "explore/scopes.hpp"

namespace holdfast::sim::explore {
namespace {

std::string text_of(const schedule& chosen) {
    std::string text;
    for (const std::size_t one : chosen) text += (text.empty() ? "" : ",") + std::to_string(one);
    return text;
}

schedule schedule_of(const std::string& text) {
    schedule chosen;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
        std::size_t number = 0;
        at = std::from_chars(at, end, number).ptr;
        chosen.push_back(number);
        while (at < end && (*at < '0' || *at > '9')) ++at;
    }
    return chosen;
}

void list() {
    for (const scope& one : all_scopes()) std::printf("%-28s %s\n", one.name.c_str(), one.about.c_str());
}

int play(const scope& what, const schedule& chosen) {
    const auto tell = [](const std::string& line) { std::puts(line.c_str()); };
    const std::string verdict = replay(maker_of(what, tell), chosen, tell);
    std::printf("%s\n", verdict.empty() ? "every rule was kept" : ("VIOLATION: " + verdict).c_str());
    return verdict.empty() ? 0 : 1;
}

bool explore_and_tell(const scope& what, const limits& most) {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    const findings found = explore(maker_of(what), most);
    const double took = std::chrono::duration<double>(clock::now() - begin).count();
    static std::mutex one_at_a_time;
    const std::lock_guard locked(one_at_a_time);
    std::printf("%-28s %s: %llu schedules, %llu states, %llu events, depth %zu, %.1f s\n", what.name.c_str(),
                !found.verdict.empty() ? "BROKEN"
                : found.is_complete    ? "complete"
                                       : "not complete",
                static_cast<unsigned long long>(found.schedules), static_cast<unsigned long long>(found.states),
                static_cast<unsigned long long>(found.events), found.depth, took);
    if (found.verdict.empty()) return std::fflush(stdout), true;
    std::printf("  VIOLATION after %zu events: %s\n  replay: holdfast-sim --explore %s --schedule %s\n",
                found.violating_events, found.verdict.c_str(), what.name.c_str(), text_of(found.violating).c_str());
    std::fflush(stdout);
    return false;
}

bool break_all(std::vector<scope>& scopes, const std::string& name) {
    for (const mutant& one : mutants()) {
        if (one.name != name) continue;
        for (scope& broken : scopes) {
            if (!apply(one, broken)) return std::fputs("holdfast-sim: no scope has what it breaks\n", stderr), false;
        }
        return true;
    }
    return std::fprintf(stderr, "holdfast-sim: no mutant has the name '%s'\n", name.c_str()), false;
}

}  // namespace

int run(const command_options& options) {
    if (options.scope == "list") return list(), 0;
    std::vector<scope> wanted = find_scopes(options.scope);
    if (wanted.empty()) {
        std::fprintf(stderr, "holdfast-sim: no scope has the name '%s'; --explore list tells them\n",
                     options.scope.c_str());
        return 2;
    }
    if (!options.mutant.empty() && !break_all(wanted, options.mutant)) return 2;
    if (!options.schedule.empty()) return play(wanted.front(), schedule_of(options.schedule));
    std::atomic<std::size_t> next{0};
    std::atomic<bool> is_broken{false};
    const auto work = [&] {
        for (std::size_t i = next++; i < wanted.size(); i = next++) {
            if (!explore_and_tell(wanted[i], {.schedules = options.most_schedules})) is_broken = true;
        }
    };
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < options.jobs; ++i) others.emplace_back(work);
    work();
    others.clear();
    return is_broken ? 1 : 0;
}

}  // namespace holdfast::sim::explore
