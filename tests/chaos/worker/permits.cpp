// Takes permits again and again, and tells while it believes in them.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "worker.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

// Each hold has a name of its own: the thread's number and how many it had before.
void take_and_tell(semaphore& pool, int thread, const std::stop_token& end) {
    for (int taken = 0; !end.stop_requested(); ++taken) {
        const std::size_t permits = 1 + static_cast<std::size_t>(thread + taken) % 3;
        const lease held = pool.try_acquire_for(500ms, permits);
        if (!held) continue;
        const std::string name = std::to_string(thread) + "." + std::to_string(taken);
        for (int look = 0; look < 5; ++look) {
            const std::int64_t now = now_us();
            if (held.validity() <= 0ms) break;
            tell("believes " + name + " " + std::to_string(now) + " " + std::to_string(permits));
            std::this_thread::sleep_for(2ms);
        }
    }
}

}  // namespace

int take_permits(arguments given) {
    client link{given[0], {.max_lease = 5s}};
    semaphore pool{link, given[1], std::stoul(given[2]), {.lease = to_milliseconds(given[3])}};
    const std::stop_token end = end_of_input();
    std::vector<std::jthread> threads;
    for (int i = 0; i < std::stoi(given[4]); ++i) threads.emplace_back([&, i] { take_and_tell(pool, i, end); });
    threads.clear();
    tell("done");
    return 0;
}

}  // namespace holdfast::chaos
