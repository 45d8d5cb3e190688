#include "cli/bench/bench.hpp"

#include "cli/inspect/servers/ask.hpp"

#include <holdfast/mutex.hpp>
#include <holdfast/shared_mutex.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <random>
#include <thread>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr unsigned cycles_per_write = 20;  // of read_mostly
constexpr auto longest_wait = 30s;         // a server that has gone away is to end the benchmark, too

// Names that nobody else has. Their keys are removed at the end, however that comes about.
class scratch_names {
public:
    scratch_names(const server_set& servers, std::string_view workload, const bench_terms& terms)
        : servers_(servers),
          prefix_(terms.prefix),
          stem_(fmt::format("bench:{:08x}:{}", std::random_device{}(), workload)) {}
    scratch_names(const scratch_names&) = delete;

    std::string make(unsigned number) {
        const std::string name = fmt::format("{}:{}", stem_, number);
        if (made_.empty() || made_.back().name.text() != name) {
            made_.emplace_back(wire::lock_name(name), wire::key_naming::tagged, prefix_);
        }
        return name;
    }

    ~scratch_names() {
        for (std::size_t i = 0; i < servers_.size(); ++i) remove_from(servers_[i]);
    }

private:
    void remove_from(const client& server) const {
        try {
            for (const lock_ref& lock : made_) {
                const wire::lock_keys& k = lock.keys;
                ask(server, {"DEL", k.lock(), k.queue(), k.waiters(), k.fence(), k.leases(), k.grants()});
            }
        } catch (const error&) {
            return;  // the server is away; all of them expire, within a minute
        }
    }

    const server_set& servers_;
    std::string prefix_;
    std::string stem_;
    std::vector<lock_ref> made_;
};

// One thread's part.
class worker {
public:
    worker(const client& server, workload which, const std::string& name, const bench_terms& terms) {
        if (which == workload::read_mostly) {
            shared_.emplace(server, name, shared_mutex_options{.lease = terms.lease, .prefix = terms.prefix});
        } else {
            plain_.emplace(server, name, mutex_options{.lease = terms.lease, .prefix = terms.prefix});
        }
    }

    // Until told that the time is over, and at least once; `abort` also ends a wait.
    void work(const std::atomic<bool>& over, const std::stop_token& abort) {
        try {
            do {
                const auto before = clock::now();
                lease hold = acquire({.stop = abort});
                if (!hold) throw error(errc::timed_out, "benchmark");
                if (const auto why = hold.release()) throw error(static_cast<errc>(why.value()), "release");
                latency_.add(clock::now() - before);
                cycles_.fetch_add(1, std::memory_order_relaxed);
            } while (!over.load(std::memory_order_relaxed) && !abort.stop_requested());
        } catch (const error& why) {
            if (why.condition() != errc::cancelled) trouble_ = std::current_exception();
        }
    }

    std::uint64_t cycles() const noexcept { return cycles_.load(std::memory_order_relaxed); }
    const latency_counts& latency() const noexcept { return latency_; }
    const std::exception_ptr& failure() const noexcept { return trouble_; }

private:
    lease acquire(acquire_options options) {
        if (plain_) return plain_->try_acquire_for(longest_wait, std::move(options));
        const bool writes = cycles() % cycles_per_write == cycles_per_write - 1;
        return writes ? shared_->try_acquire_for(longest_wait, std::move(options))
                      : shared_->try_acquire_shared_for(longest_wait, std::move(options));
    }

    std::optional<mutex> plain_;
    std::optional<shared_mutex> shared_;
    std::atomic<std::uint64_t> cycles_{0};
    latency_counts latency_;
    std::exception_ptr trouble_;
};

// All threads of a workload, from the start to the last cycle's end.
class crew {
public:
    crew(const client& server, workload which, const bench_terms& terms, scratch_names& names) {
        const bool alone = which == workload::uncontended || which == workload::quorum;
        const unsigned size = alone ? 1 : terms.threads;
        for (unsigned i = 0; i < size; ++i) {
            workers_.emplace_back(server, which, names.make(which == workload::parallel ? i : 0), terms);
        }
    }
    ~crew() { finish(); }

    void start() {
        began_ = clock::now();
        for (worker& one : workers_) {
            threads_.emplace_back([this, &one] { one.work(over_, abort_.get_token()); });
        }
    }
    void abort() { abort_.request_stop(); }
    // Throws what went wrong for one of them.
    void finish_and_check() {
        finish();
        for (const worker& one : workers_) {
            if (one.failure()) std::rethrow_exception(one.failure());
        }
    }

    std::uint64_t cycles() const {
        std::uint64_t sum = 0;
        for (const worker& one : workers_) sum += one.cycles();
        return sum;
    }
    latency_counts latency() const {
        latency_counts all;
        for (const worker& one : workers_) all.add(one.latency());
        return all;
    }
    clock::duration took() const noexcept { return took_; }

private:
    void finish() {
        if (threads_.empty()) return;
        over_ = true;
        for (std::thread& one : threads_) one.join();
        threads_.clear();
        took_ = clock::now() - began_;
    }

    std::deque<worker> workers_;
    std::vector<std::thread> threads_;
    std::atomic<bool> over_{false};
    std::stop_source abort_;
    clock::time_point began_;
    clock::duration took_{0};
};

// Lines "cmdstat_get:calls=12,usec=…". What INFO itself and signs of life cost is left out.
std::optional<server_effort> effort_so_far(const client& server) {
    std::string told;
    try {
        told = ask(server, {"INFO", "commandstats"}).text;
    } catch (const error& why) {
        if (why.condition() != errc::no_permission) throw;
        return std::nullopt;
    }
    constexpr std::string_view head = "cmdstat_";
    constexpr std::string_view figure = ":calls=";
    server_effort sum;
    for (std::size_t at = told.find(head); at != std::string::npos; at = told.find(head, at)) {
        at += head.size();
        const std::size_t end = told.find(figure, at);
        if (end == std::string::npos) break;
        const std::string_view command = std::string_view(told).substr(at, end - at);
        const std::size_t digits = end + figure.size();
        const auto calls =
            whole_number(std::string_view(told).substr(digits, told.find(',', digits) - digits)).value_or(0);
        if (command == "info" || command == "ping") continue;
        if (command == "evalsha" || command == "eval") sum.commands += static_cast<std::uint64_t>(calls);
        sum.calls += static_cast<std::uint64_t>(calls);
    }
    return sum;
}

// All servers together, of a Cluster all primaries; nothing if one of them does not tell.
std::optional<server_effort> effort_so_far(server_set& servers) {
    server_effort sum;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        member_list asked = servers.members(i);
        if (asked.empty()) asked.push_back(&servers[i]);
        for (const client* each : asked) {
            const auto one = effort_so_far(*each);
            if (!one) return std::nullopt;
            sum.commands += one->commands;
            sum.calls += one->calls;
        }
    }
    return sum;
}

// Until the time is over. False: a signal asked to end.
bool let_run(const crew& all, workload which, const bench_terms& terms, signal_inbox& signals,
             const bench_listener& listener) {
    const auto began = clock::now();
    for (;;) {
        const auto passed = std::chrono::floor<milliseconds>(clock::now() - began);
        if (passed >= terms.time) return true;
        listener(which, static_cast<double>(passed.count()) / static_cast<double>(terms.time.count()), all.cycles());
        const woken why = rest(signals, std::min<milliseconds>(100ms, terms.time - passed));
        if (why == woken::by_end) return false;
        if (why == woken::by_stop) stop_this_process();
    }
}

std::optional<measurement> run_crew(const client& server, workload which, const bench_terms& terms,
                                    scratch_names& names, signal_inbox& signals, const bench_listener& listener) {
    crew all(server, which, terms, names);
    all.start();
    const bool is_complete = let_run(all, which, terms, signals, listener);
    if (!is_complete) all.abort();
    all.finish_and_check();
    if (!is_complete) return std::nullopt;
    return measurement{which, all.took(), all.latency(), std::nullopt};
}

}  // namespace

std::optional<measurement> measure(client& link, server_set& servers, workload which, const bench_terms& terms,
                                   signal_inbox& signals, const bench_listener& listener) {
    scratch_names names(servers, text_of(which).name, terms);
    // First some cycles that do not count: the connection comes up, the server learns the scripts.
    bench_terms short_terms = terms;
    short_terms.time = 50ms;
    if (!run_crew(link, which, short_terms, names, signals, [](auto&&...) {})) return std::nullopt;
    // Nobody waits for the slowest of several servers. What was sent to it before is answered before the ping.
    link.ping();
    const auto before = effort_so_far(servers);
    auto result = run_crew(link, which, terms, names, signals, listener);
    if (!result) return std::nullopt;
    link.ping();
    result->servers = servers.size();
    if (const auto after = effort_so_far(servers); before && after) {
        result->effort = server_effort{after->commands - before->commands, after->calls - before->calls};
    }
    return result;
}

}  // namespace holdfast::cli
