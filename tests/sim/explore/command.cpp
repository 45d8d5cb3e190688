#include "explore/command.hpp"

#include <algorithm>
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
        std::erase_if(scopes, [&](scope& broken) { return !apply(one, broken); });
        if (scopes.empty()) return std::fputs("holdfast-sim: these scopes do not have what it breaks\n", stderr), false;
        return true;
    }
    return std::fprintf(stderr, "holdfast-sim: no mutant has the name '%s'\n", name.c_str()), false;
}

// Which scope finds which mutant first.
void look_for_mutants(const std::vector<scope>& scopes, const command_options& options) {
    const std::vector<mutant> all = mutants();
    std::atomic<std::size_t> next{0};
    std::mutex one_at_a_time;
    const auto work = [&] {
        for (std::size_t i = next++; i < all.size(); i = next++) {
            std::string told = "not in scope";
            for (scope broken : scopes) {
                if (!apply(all[i], broken)) continue;
                told = "not found";
                const findings found = explore(maker_of(broken), {.schedules = options.most_schedules});
                if (found.verdict.empty()) continue;
                told = broken.name + ", schedule " + std::to_string(found.schedules) + ", event " +
                       std::to_string(found.events) + ": " + found.verdict;
                break;
            }
            const std::lock_guard locked(one_at_a_time);
            std::printf("%-44s %s\n", all[i].name.c_str(), told.c_str());
            std::fflush(stdout);
        }
    };
    std::vector<std::jthread> others;
    for (unsigned n = 1; n < options.jobs; ++n) others.emplace_back(work);
    work();
}

}  // namespace

int run(const command_options& options) {
    if (options.scope == "list") return list(), 0;
    std::vector<scope> wanted;
    for (std::size_t at = 0; at <= options.scope.size();) {
        const std::size_t end = std::min(options.scope.find(',', at), options.scope.size());
        const std::vector<scope> some = find_scopes(std::string_view(options.scope).substr(at, end - at));
        wanted.insert(wanted.end(), some.begin(), some.end());
        at = end + 1;
    }
    for (scope& one : wanted) {
        if (options.most_waits && one.most_waits) one.most_waits = options.most_waits;
        if (options.most_deviations && one.most_deviations) one.most_deviations = options.most_deviations;
        if (options.horizon_ms) one.horizon = milliseconds(*options.horizon_ms);
    }
    if (wanted.empty()) {
        std::fprintf(stderr, "holdfast-sim: no scope has the name '%s'; --explore list tells them\n",
                     options.scope.c_str());
        return 2;
    }
    if (options.mutant == "all") return look_for_mutants(wanted, options), 0;
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
