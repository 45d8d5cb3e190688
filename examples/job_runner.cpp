// A nightly job starts on every machine, so that it runs even if some are down. It must run on one machine only. The
// machine that acquires the lock runs the job; the others give up at once. The client renews the lock while the job
// runs. If the hold is lost nevertheless (the server was gone for too long), the job is told in time to stop.
//
// Usage: job_runner [URL]. The machines are threads here.
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <iostream>
#include <string>
#include <syncstream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

// The job looks at `stop` between two steps: from then on somebody else may be doing them.
bool run_job(const std::string& machine, const std::stop_token& stop) {
    for (int step = 1; step <= 4; ++step) {
        if (stop.stop_requested()) {
            std::osyncstream(std::cout) << machine << " lost the lock, stops before step " << step << '\n';
            return false;
        }
        std::osyncstream(std::cout) << machine << ": step " << step << " of 4\n";
        std::this_thread::sleep_for(1500ms);
    }
    return true;
}

}  // namespace

int main(int count, char** words) try {
    const std::string url = count > 1 ? words[1] : "redis://127.0.0.1:6379";
    constexpr int machines = 3;
    std::barrier midnight{machines};
    std::barrier everybody_asked{machines};
    std::atomic<int> runs{0};
    {
        std::vector<std::jthread> runners;
        for (int number = 1; number <= machines; ++number) {
            runners.emplace_back([&, machine = "machine " + std::to_string(number)] {
                holdfast::client redis{url};
                // A short lease, renewed while this machine lives: if it dies, another one may start soon.
                holdfast::mutex lock{redis, "job:nightly", {.lease = 5s}};
                redis.ping();
                midnight.arrive_and_wait();
                holdfast::lease hold = lock.try_acquire();
                everybody_asked.arrive_and_wait();
                if (!hold) {
                    std::osyncstream(std::cout) << machine << ": somebody else runs it\n";
                } else if (run_job(machine, hold.lost())) {
                    ++runs;
                }
            });
        }
    }
    std::cout << "the job ran " << runs << " time(s)\n";
    return runs == 1 ? 0 : 1;
} catch (const std::exception& failure) {
    std::cerr << "job_runner: " << failure.what() << '\n';
    return 2;
}
