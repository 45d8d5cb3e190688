// Kept locks: what a local grant costs, each figure against its floor in the same round.
//
//   kept        one thread acquires again and again             floor: the same without `keep`
//   local       16 threads of one process want one lock         floor: a fair lock of std::mutex and
//   std::condition_variable local.read  the same, read-write, 95 % read                 floor: std::shared_mutex
//   passing     4 processes x 4 threads want one lock           floor: the same with passes = 0
//   give_back   acquiring a lock that another client keeps      floor: acquiring a free lock
//
// --only NAME measures one of them.

#include "support.hpp"

#include <holdfast/holdfast.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr int rounds = 5;
constexpr auto slice = 400ms;
constexpr std::size_t threads_of_one_process = 16;
const mutex_options keeping{.lease = 20s, .keep = 10s, .passes = 16};

// First come, first served; each waiter sleeps on a condition of its own.
class fair_mutex {
public:
    void lock() {
        std::unique_lock held(mutex_);
        if (!is_locked_) {
            is_locked_ = true;
            return;
        }
        waiter mine;
        waiting_.push_back(&mine);
        mine.turn.wait(held, [&] { return mine.is_next; });
    }
    void unlock() {
        const std::lock_guard held(mutex_);
        if (waiting_.empty()) {
            is_locked_ = false;
            return;
        }
        waiter& next = *waiting_.front();
        waiting_.pop_front();
        next.is_next = true;
        next.turn.notify_one();
    }

private:
    struct waiter {
        std::condition_variable turn;
        bool is_next = false;
    };
    std::mutex mutex_;
    std::deque<waiter*> waiting_;
    bool is_locked_ = false;
};

// Cycles per second of so many threads.
template <typename Cycle>
double cycles_per_second(std::size_t threads, Cycle cycle) {
    std::atomic<bool> over = false;
    std::atomic<std::uint64_t> all = 0;
    std::vector<std::thread> crew;
    const auto begin = clock::now();
    for (std::size_t i = 0; i < threads; ++i) {
        crew.emplace_back([&, i] {
            std::minstd_rand random(static_cast<unsigned>(i + 1));
            std::uint64_t mine = 0;
            for (; !over.load(std::memory_order_relaxed); ++mine) cycle(random);
            all += mine;
        });
    }
    std::this_thread::sleep_for(slice);
    over = true;
    for (auto& each : crew) each.join();
    return static_cast<double>(all) / std::chrono::duration<double>(clock::now() - begin).count();
}

// A hold is marked as one to ask for only once its client listens.
template <typename Lock>
void warm_up(Lock& lock, const client& redis) {
    for (int i = 0; i < 20; ++i) {
        lock.lock();
        lock.unlock();
        const_cast<client&>(redis).ping();
    }
}

figure measure_kept(const server_place& server) {
    figure result({.name = "kept", .unit = "us, p50, lock and unlock", .target = 0.05});
    const auto counted = std::make_shared<metrics>();
    client redis(server.unix_url(), {.metrics = counted});
    mutex kept(redis, "kept", keeping);
    mutex plain(redis, "plain");
    warm_up(kept, redis);
    std::vector<double> p99;
    for (int i = 0; i < rounds; ++i) {
        const auto times = [](mutex& lock, int cycles) {
            std::vector<double> taken;
            for (int n = 0; n < cycles; ++n) {
                taken.push_back(microseconds([&] {
                    lock.lock();
                    lock.unlock();
                }));
            }
            return taken;
        };
        auto ours = times(kept, 200'000);
        p99.push_back(percentile(ours, 99));
        result.add({.holdfast = median(std::move(ours)), .floor = median(times(plain, 2'000))});
    }
    result.note("p99", median(p99));
    result.note("asked of the server", static_cast<double>(counted->acquired) - rounds * 2'000);
    return result;
}

figure measure_local(const server_place& server) {
    figure result(
        {.name = "local", .unit = "cycles/s, 16 threads", .direction = figure::better::higher, .target = 0.5});
    client redis(server.unix_url());
    mutex lock(redis, "local", keeping);
    warm_up(lock, redis);
    fair_mutex fair;
    for (int i = 0; i < rounds; ++i) {
        const auto with = [](auto& each) {
            return cycles_per_second(threads_of_one_process, [&](auto&) { const std::lock_guard held(each); });
        };
        result.add({.holdfast = with(lock), .floor = with(fair)});
    }
    return result;
}

figure measure_local_read(const server_place& server) {
    figure result(
        {.name = "local.read", .unit = "cycles/s, 16 threads", .direction = figure::better::higher, .target = 0.33});
    client redis(server.unix_url());
    shared_mutex lock(redis, "read", {.lease = 20s, .keep = 10s, .passes = 16});
    warm_up(lock, redis);
    std::shared_mutex floor;
    for (int i = 0; i < rounds; ++i) {
        const auto with = [](auto& each) {
            return cycles_per_second(threads_of_one_process, [&](auto& random) {
                if (random() % 100 < 95) {
                    const std::shared_lock held(each);
                } else {
                    const std::lock_guard held(each);
                }
            });
        };
        result.add({.holdfast = with(lock), .floor = with(floor)});
    }
    return result;
}

struct crowd {
    double cycles = 0;
    double longest_wait_ms = 0;
};

// In processes of their own, started before this one has any thread.
crowd run_crowd(const server_place& server, const std::string& name, unsigned passes) {
    int pipes[2];
    if (::pipe(pipes) != 0) throw std::runtime_error("no pipe");
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
        const pid_t child = ::fork();
        if (child != 0) {
            children.push_back(child);
            continue;
        }
        crowd mine;
        {
            client redis(server.unix_url());
            mutex lock(redis, name, {.lease = 20s, .keep = 10s, .passes = passes});
            std::mutex guard;
            warm_up(lock, redis);
            mine.cycles = cycles_per_second(4, [&](auto&) {
                const double waited = microseconds([&] { lock.lock(); }) / 1000;
                lock.unlock();
                const std::lock_guard held(guard);
                mine.longest_wait_ms = std::max(mine.longest_wait_ms, waited);
            });
        }
        static_cast<void>(!::write(pipes[1], &mine, sizeof mine));
        ::_exit(0);
    }
    crowd all;
    for (std::size_t i = 0; i < children.size(); ++i) {
        crowd one;
        if (::read(pipes[0], &one, sizeof one) != sizeof one) throw std::runtime_error("a process said nothing");
        all.cycles += one.cycles;
        all.longest_wait_ms = std::max(all.longest_wait_ms, one.longest_wait_ms);
    }
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
    ::close(pipes[0]);
    ::close(pipes[1]);
    return all;
}

figure measure_passing(const server_place& server) {
    figure result(
        {.name = "passing", .unit = "cycles/s, 4 x 4 callers", .direction = figure::better::higher, .target = 5});
    std::vector<double> longest;
    for (int i = 0; i < rounds; ++i) {
        const crowd ours = run_crowd(server, "passing", 16);
        result.add({.holdfast = ours.cycles, .floor = run_crowd(server, "strict", 0).cycles});
        longest.push_back(ours.longest_wait_ms);
    }
    // Three other processes go first, each for at most 10 ms.
    result.note("longest wait, ms", median(longest));
    result.note("the bound, ms", 3 * 10);
    return result;
}

figure measure_give_back(const server_place& server) {
    figure result({.name = "give_back", .unit = "us, p50", .target = 2.5});
    client keeper(server.unix_url());
    client taker(server.unix_url());
    mutex kept(keeper, "given", keeping);
    mutex wanted(taker, "given");
    mutex free(taker, "free");
    warm_up(kept, keeper);
    for (int i = 0; i < rounds; ++i) {
        std::vector<double> ours;
        std::vector<double> floor;
        for (int n = 0; n < 200; ++n) {
            kept.lock();
            kept.unlock();
            keeper.ping();
            std::this_thread::sleep_for(200us);  // it is unused, and its client waits for messages
            ours.push_back(microseconds([&] { wanted.lock(); }));
            boost::system::error_code ignored;
            wanted.unlock(ignored);
            std::this_thread::sleep_for(200us);
            floor.push_back(microseconds([&] { free.lock(); }));
            free.unlock(ignored);
        }
        result.add({.holdfast = median(std::move(ours)), .floor = median(std::move(floor))});
    }
    return result;
}

std::vector<figure> measure(std::string_view only) {
    const server_place server = server_of_this_run();
    std::vector<figure> figures;
    const auto want = [&](std::string_view name) { return only.empty() || only == name; };
    if (want("passing")) figures.push_back(measure_passing(server));  // first: it forks
    if (want("kept")) figures.push_back(measure_kept(server));
    if (want("local")) figures.push_back(measure_local(server));
    if (want("local.read")) figures.push_back(measure_local_read(server));
    if (want("give_back")) figures.push_back(measure_give_back(server));
    return figures;
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
    try {
        std::string_view only;
        for (int i = 1; i + 1 < argc; ++i) {
            if (std::string_view(argv[i]) == "--only") only = argv[i + 1];
        }
        holdfast::bench::report(holdfast::bench::measure(only), argc, argv);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s: %s\n", argv[0], problem.what());
        return 1;
    }
}
