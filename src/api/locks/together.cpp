#include "api/locks/together.hpp"

#include <algorithm>

namespace holdfast::api {

milliseconds validity_of_all(std::span<const lease> leases) noexcept {
    if (leases.empty()) return milliseconds(0);
    milliseconds shortest = milliseconds::max();
    for (const lease& one : leases) shortest = std::min(shortest, one.validity());
    return shortest;
}

bool all_valid(std::span<const lease> leases) noexcept {
    return std::all_of(leases.begin(), leases.end(), [](const lease& one) { return one.validity() > milliseconds(0); });
}

loss_of_any::loss_of_any(std::span<const lease> leases) {
    for (const lease& one : leases) {
        // A callback of the user may release the leases, which destroys this object. The copy survives.
        heard_.push_back(std::make_unique<callback>(one.lost(), [source = source_] {
            std::stop_source kept = source;
            kept.request_stop();
        }));
    }
}

}  // namespace holdfast::api
