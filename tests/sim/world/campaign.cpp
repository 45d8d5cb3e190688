#include "world/campaign.hpp"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>

#include "wire/scripts.hpp"

namespace holdfast::sim {
namespace {

thread_local std::uint64_t present_seed = 0;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int crashes[] = {SIGABRT};  // the sanitizer reports the others
#else
constexpr int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
#endif

// An assertion of the engine ends the process: print the seed first.
void on_crash(int signal) {
    char text[64];
    const int size = std::snprintf(text, sizeof text, "\nseed %llu: signal %d\n",
                                   static_cast<unsigned long long>(present_seed), signal);
    if (size > 0 && write(STDERR_FILENO, text, static_cast<std::size_t>(size)) < 0) return;
    std::signal(signal, SIG_DFL);
}

class campaign {
public:
    explicit campaign(const campaign_options& options) : options_(options), next_(options.first_seed) {}

    campaign_result run() {
        for (const int each : crashes) std::signal(each, on_crash);
        std::vector<std::thread> workers;
        for (unsigned i = 1; i < options_.jobs; ++i) workers.emplace_back([this] { work(); });
        work();
        for (std::thread& worker : workers) worker.join();
        for (const int each : crashes) std::signal(each, SIG_DFL);
        return std::move(total_);
    }

private:
    void work() {
        scenario_options scenario = options_.scenario;
        scenario.engine = make_engine();
        const std::uint64_t end = options_.first_seed + options_.seeds;
        while (!stop_) {
            scenario.seed = next_++;
            if (scenario.seed >= end) break;
            present_seed = scenario.seed;
            const bool counted = scenario.seed - options_.first_seed < options_.counted;
            scenario.engine->count_lines(counted ? script_engine::coverage::on : script_engine::coverage::off);
            scenario_result result;
            try {
                result = simulate(scenario);
            } catch (const std::exception& thrown) {
                result.verdict = std::string("exception: ") + thrown.what();
            }
            add(result, scenario.seed);
        }
        add_lines(*scenario.engine);
    }

    // Compiles all scripts first, so that resetting the engine after a scenario is cheap.
    static std::shared_ptr<script_engine> make_engine() {
        auto engine = std::make_shared<script_engine>();
        for (const auto& script : wire::all()) engine->compile(script.text);
        engine->settle();
        return engine;
    }

    void add(const scenario_result& one, std::uint64_t seed) {
        const std::lock_guard guard(mutex_);
        ++total_.scenarios;
        for (std::size_t i = 0; i < fault_kinds; ++i) total_.faults[i] += one.faults[i];
        total_.takeovers += one.takeovers;
        total_.holds += one.holds;
        total_.scripts += one.scripts;
        total_.simulated += one.simulated;
        if (!one.verdict.empty()) {
            stop_ = options_.then == campaign_options::after_violation::stop;
            total_.violations[seed] = one.verdict;
            if (!total_.violation || seed < total_.violation->seed) total_.violation = {seed, one.verdict};
        }
        if (options_.progress) options_.progress(total_.scenarios);
    }

    void add_lines(script_engine& engine) {
        const std::lock_guard guard(mutex_);
        for (const auto& script : wire::all()) {
            if (!has_run(engine, script)) continue;
            const std::vector<source_line> source_lines = source_lines_of(script);
            const line_coverage& lines = engine.lines_of(script.sha1);
            for (const int line : lines.executable) {
                const auto& [file, number] = source_lines.at(static_cast<std::size_t>(line));
                const bool fresh = total_.lines[file].insert(number).second;
                if (fresh) total_.missed[file].insert(number);
            }
        }
        for (const auto& script : wire::all()) {
            if (!has_run(engine, script)) continue;
            const std::vector<source_line> source_lines = source_lines_of(script);
            const std::vector<std::uint64_t>& hits = engine.lines_of(script.sha1).hits;
            for (std::size_t line = 1; line < hits.size(); ++line) {
                if (hits[line] == 0) continue;
                const auto& [file, number] = source_lines.at(line);
                total_.missed[file].erase(number);
            }
        }
    }

    static bool has_run(script_engine& engine, const wire::script& script) {
        const std::vector<std::uint64_t>& hits = engine.lines_of(script.sha1).hits;
        return std::any_of(hits.begin(), hits.end(), [](std::uint64_t times) { return times != 0; });
    }

    struct source_line {
        std::string file;
        int line;
    };

    // Maps each line of a whole script, from 1, to its file and line. An include is enclosed in --@from and --@end, and
    // counts as one line of the including file.
    static std::vector<source_line> source_lines_of(const wire::script& script) {
        std::vector<source_line> out{{}};
        std::vector<source_line> open{{std::string(script.name), 0}};
        std::string_view left = script.text;
        while (!left.empty()) {
            const std::string_view line = left.substr(0, left.find('\n'));
            left.remove_prefix(std::min(left.size(), line.size() + 1));
            constexpr std::string_view begin = "--@from ";
            constexpr std::string_view copy = "--@again ";  // of the file before it
            if (line == "--@end") open.pop_back();
            if (line != "--@end" && !line.starts_with(copy)) ++open.back().line;
            out.push_back(open.back());
            if (line.starts_with(begin)) open.push_back({std::string(line.substr(begin.size())), 0});
            if (line.starts_with(copy)) open.push_back({std::string(line.substr(copy.size())), 0});
        }
        return out;
    }

    const campaign_options& options_;
    std::atomic<std::uint64_t> next_;
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    campaign_result total_;
};

}  // namespace

campaign_result run_campaign(const campaign_options& options) {
    return campaign(options).run();
}

}  // namespace holdfast::sim
