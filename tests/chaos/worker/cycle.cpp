#include <thread>
#include <vector>

#include "worker.hpp"

namespace holdfast::chaos {

int cycle(arguments given) {
    const client redis{given[0]};
    mutex lock{redis, given[1]};
    // Every request in flight before a script is known sends its full text again: a cost of the start, not of a cycle.
    mutex{redis, given[1] + ":warm-up"}.acquire().release();
    const auto cycles = std::stoul(given[3]);
    tell("ready");
    const auto start = end_of_input();
    while (!start.stop_requested()) std::this_thread::sleep_for(milliseconds{1});
    {
        std::vector<std::jthread> threads;
        for (unsigned long index = 0; index < std::stoul(given[2]); ++index) {
            threads.emplace_back([&] {
                for (unsigned long done = 0; done < cycles; ++done) const lease held = lock.acquire();
            });
        }
    }
    tell("done");
    return 0;
}

}  // namespace holdfast::chaos
