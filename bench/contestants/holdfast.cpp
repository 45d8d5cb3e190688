// holdfast as a contestant.
//
//   face=blocking  callers are threads that call acquire() and release()
//   face=async     callers are chains of async_acquire and async_release without a thread of their own
//   names=own|one  every caller has a lock of its own, or all of them want the same
//   kind=mutex|shared|semaphore  of a shared_mutex, `writers` per cent of the cycles write and the others read; of a
//                  semaphore each caller takes one of `permits`
//   end=scope|told a hold ends as at the end of a scope, or by release(), which waits for the answer
//   url=URL        a majority of several servers: URL,URL,URL

#include "contestants/contestant.hpp"

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <cstdlib>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <sstream>

namespace holdfast::bench {
namespace {

// Servers of a majority do not vote before they are as old as the longest lease. The test of the harness has no minute.
std::optional<milliseconds> short_lease() {
    const char* const text = std::getenv("HOLDFAST_BENCH_LEASE_MS");
    return text == nullptr ? std::nullopt : std::optional(milliseconds(std::stoi(text)));
}

template <typename Options>
Options terms() {
    Options options;
    if (const auto lease = short_lease()) options.lease = *lease;
    return options;
}

client connect(const std::string& urls) {
    std::vector<std::string> each;
    std::istringstream list(urls);
    for (std::string url; std::getline(list, url, ',');) each.push_back(url);
    client_options options;
    if (const auto lease = short_lease()) options.max_lease = *lease;
    return client(each, options);
}

std::string name_of(const settings& chosen, std::size_t caller) {
    if (chosen.text("names", "own") == "one") return "bench";
    return "bench:" + std::to_string(chosen.number("process")) + ":" + std::to_string(caller);
}

void end(const settings& chosen, lease& hold) {
    static const bool told = chosen.text("end", "scope") == "told";
    if (told) {
        hold.release();
    } else {
        hold = {};
    }
}

std::size_t callers_of(const settings& chosen) {
    return static_cast<std::size_t>(chosen.number("callers", 1));
}

// Short enough that the first real cycle finds everything loaded, subscribed and in the caches.
constexpr int warm_up_cycles = 50;

void run_mutex(const settings& chosen, const client& redis) {
    std::vector<std::unique_ptr<mutex>> locks;
    std::vector<lease> holds(callers_of(chosen));
    for (std::size_t i = 0; i < holds.size(); ++i) {
        locks.push_back(std::make_unique<mutex>(redis, name_of(chosen, i), terms<mutex_options>()));
    }
    const blocking_cycle cycle{.acquire = [&](std::size_t i) { holds[i] = locks[i]->acquire(); },
                               .release = [&](std::size_t i) { end(chosen, holds[i]); }};
    for (int i = 0; i < warm_up_cycles; ++i) {
        cycle.acquire(0);
        cycle.release(0);
    }
    converse([&](double seconds) { run_blocking_slice(chosen, cycle, seconds); });
}

void run_shared(const settings& chosen, const client& redis) {
    shared_mutex catalog(redis, "bench", terms<shared_mutex_options>());
    const auto writers = static_cast<unsigned>(chosen.number("writers"));
    std::vector<lease> holds(callers_of(chosen));
    std::vector<std::minstd_rand> dice;
    for (std::size_t i = 0; i < holds.size(); ++i) dice.emplace_back(i + 1);
    const blocking_cycle cycle{.acquire =
                                   [&](std::size_t i) {
                                       const bool writes = dice[i]() / 16 % 100 < writers;
                                       holds[i] = writes ? catalog.acquire() : catalog.acquire_shared();
                                   },
                               .release = [&](std::size_t i) { end(chosen, holds[i]); }};
    converse([&](double seconds) { run_blocking_slice(chosen, cycle, seconds); });
}

void run_semaphore(const settings& chosen, const client& redis) {
    semaphore pool(redis, "bench", static_cast<std::size_t>(chosen.number("permits")), terms<semaphore_options>());
    std::vector<lease> holds(callers_of(chosen));
    const blocking_cycle cycle{.acquire = [&](std::size_t i) { holds[i] = pool.acquire(); },
                               .release = [&](std::size_t i) { end(chosen, holds[i]); }};
    converse([&](double seconds) { run_blocking_slice(chosen, cycle, seconds); });
}

// One caller without a thread: each completion starts the next step, until time is up.
class chain {
public:
    chain(const client& redis, std::string name) : lock_(redis, std::move(name), terms<mutex_options>()) {}

    void start(double end, std::latch& done) {
        end_ = end;
        done_ = &done;
        seen_ = {};
        step();
    }
    const diary& seen() const { return seen_; }

private:
    void step() {
        const double asked = now_us();
        if (asked >= end_) return done_->count_down();
        lock_.async_acquire([this, asked](boost::system::error_code failed, lease hold) {
            expect_success(failed);
            hold_ = std::move(hold);
            hold_.async_release([this, asked](boost::system::error_code failed_too) {
                expect_success(failed_too);
                seen_.taken.push_back(now_us() - asked);
                step();
            });
        });
    }

    static void expect_success(boost::system::error_code failed) {
        if (!failed) return;
        std::fprintf(stderr, "holdfast: %s\n", failed.message().c_str());
        std::abort();
    }

    mutex lock_;
    lease hold_;
    double end_ = 0;
    std::latch* done_ = nullptr;
    diary seen_;
};

void run_async(const settings& chosen, const client& redis) {
    std::vector<std::unique_ptr<chain>> chains;
    for (std::size_t i = 0; i < callers_of(chosen); ++i)
        chains.push_back(std::make_unique<chain>(redis, name_of(chosen, i)));
    const auto slice = [&](double seconds) -> double {
        std::latch done(static_cast<std::ptrdiff_t>(chains.size()));
        const double start = now_us();
        for (const auto& each : chains) each->start(start + seconds * 1e6, done);
        done.wait();
        return now_us() - start;
    };
    slice(0.05);  // connected and warm
    converse([&](double seconds) {
        const double cpu_before = processor_time_us();
        const double elapsed = slice(seconds);
        std::vector<diary> diaries;
        for (const auto& each : chains) diaries.push_back(each->seen());
        report_slice(diaries, elapsed, processor_time_us() - cpu_before, false);
    });
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
    using namespace holdfast::bench;
    return compete(argc, argv, [](const settings& chosen) {
        const holdfast::client redis = connect(chosen.text("url"));
        if (chosen.text("face") == "async") return run_async(chosen, redis);
        if (chosen.text("kind") == "shared") return run_shared(chosen, redis);
        if (chosen.text("kind") == "semaphore") return run_semaphore(chosen, redis);
        run_mutex(chosen, redis);
    });
}
