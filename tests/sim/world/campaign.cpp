#include "world/campaign.hpp"

#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>

#include "scripts/registry.hpp"

namespace holdfast::sim {
namespace {

thread_local std::uint64_t present_seed = 0;

// An assertion in the engine ends the process: at least it says on which day.
void on_abort(int) {
    char text[64];
    const int size =
        std::snprintf(text, sizeof text, "\nseed %llu: aborted\n", static_cast<unsigned long long>(present_seed));
    if (size > 0 && write(STDERR_FILENO, text, static_cast<std::size_t>(size)) < 0) return;
}

class campaign {
public:
    explicit campaign(const campaign_options& options) : options_(options), next_(options.first_seed) {}

    campaign_result run() {
        std::signal(SIGABRT, on_abort);
        std::vector<std::thread> workers;
        for (unsigned i = 1; i < options_.jobs; ++i) workers.emplace_back([this] { work(); });
        work();
        for (std::thread& worker : workers) worker.join();
        std::signal(SIGABRT, SIG_DFL);
        return std::move(total_);
    }

private:
    void work() {
        day_options day = options_.day;
        day.engine = std::make_shared<script_engine>(script_engine::coverage::on);
        const std::uint64_t end = options_.first_seed + options_.seeds;
        while (!stop_) {
            day.seed = next_++;
            if (day.seed >= end) break;
            present_seed = day.seed;
            day_result result;
            try {
                result = simulate(day);
            } catch (const std::exception& thrown) {
                result.verdict = std::string("exception: ") + thrown.what();
            }
            add(result, day.seed);
        }
        add_lines(*day.engine);
    }

    void add(const day_result& one, std::uint64_t seed) {
        const std::lock_guard guard(mutex_);
        ++total_.days;
        for (std::size_t i = 0; i < mishap_kinds; ++i) total_.mishaps[i] += one.mishaps[i];
        total_.holds += one.holds;
        total_.scripts += one.scripts;
        total_.simulated += one.simulated;
        if (!one.verdict.empty()) {
            stop_ = options_.then == campaign_options::after_a_find::stop;
            total_.finds[seed] = one.verdict;
            if (!total_.found || seed < total_.found->seed) total_.found = {seed, one.verdict};
        }
        if (options_.progress) options_.progress(total_.days);
    }

    void add_lines(script_engine& engine) {
        const std::lock_guard guard(mutex_);
        for (const auto& script : scripts::all()) {
            const std::string name(script.name);
            if (engine.find(script.sha1) == nullptr) continue;
            const line_coverage& lines = engine.lines_of(script.sha1);
            const bool first = !total_.lines.contains(name);
            total_.lines[name].insert(lines.executable.begin(), lines.executable.end());
            std::set<int>& missed = total_.missed[name];
            if (first) missed = total_.lines[name];
            for (const auto& [line, hits] : lines.hits) missed.erase(line);
        }
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
