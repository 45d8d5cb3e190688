// Read, wait, write: under a lock on several servers, on a store that checks tokens.
#include <unistd.h>

#include <random>
#include <thread>

#include "store.hpp"
#include "worker.hpp"

namespace holdfast::chaos {
namespace {

/// True if the update was made.
bool section(const lease& held, const store& resource, milliseconds pause) {
    const auto lost = held.lost();
    const auto from = now_us();
    if (!believes(held, lost)) return false;
    const std::int64_t count = resource.open(held.token());
    if (count < 0) {
        tell("late");
        return false;
    }
    std::this_thread::sleep_for(pause);
    const auto before_asking = now_us();
    if (!believes(held, lost)) return false;
    tell("interval " + std::to_string(from) + ' ' + std::to_string(before_asking) + ' ' + std::to_string(held.token()));
    return resource.write(held.token(), count);
}

}  // namespace

int lock_set(arguments given) {
    const auto end = end_of_input();
    const milliseconds longest = to_milliseconds(given[3]);
    const client redis{split(given[0]), {.max_lease = longest}};
    mutex lock{redis, given[1], {.lease = longest}};
    const store resource{given[2]};
    std::mt19937 chance{static_cast<unsigned>(::getpid())};
    std::uint64_t updates = 0;
    while (!end.stop_requested()) {
        try {
            lease held = lock.acquire({.stop = end});
            if (section(held, resource, milliseconds{chance() % 4})) ++updates;
            held.release();
        } catch (const error& failure) {
            if (failure.condition() == errc::cancelled) break;
            tell("told " + std::to_string(now_us()) + ' ' + failure.what());
            std::this_thread::sleep_for(milliseconds{20});
        }
    }
    tell("done " + std::to_string(updates));
    return 0;
}

}  // namespace holdfast::chaos
