#include <thread>

#include "worker.hpp"

namespace holdfast::chaos {
namespace {

void tell_at(const std::string& event, std::int64_t time_us) {
    tell(event + ' ' + std::to_string(time_us));
}

}  // namespace

int hold(arguments given) {
    const auto end = end_of_input();
    const client redis{given[0]};
    mutex lock{redis, given[1], {.lease = to_milliseconds(given[2])}};
    lease held = lock.acquire({.stop = end});
    const auto lost = held.lost();
    tell("held " + std::to_string(now_us()) + ' ' + std::to_string(held.token()));
    bool told = false;
    while (!end.stop_requested()) {
        const auto before_asking = now_us();
        if (believes(held, lost)) {
            tell_at("believes", before_asking);
        } else if (!told) {
            tell_at("lost", before_asking);
            told = true;
        }
        std::this_thread::sleep_for(milliseconds{2});
    }
    tell_at("released", now_us());
    const auto outcome = held.release();
    tell("outcome " + (outcome ? outcome.message() : std::string{"well"}));
    return 0;
}

}  // namespace holdfast::chaos
