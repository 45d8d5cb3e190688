// Leases that are of use only together: how long all of them are valid, and when the first one is lost.
#pragma once

#include <holdfast/lease.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

namespace holdfast::api {

// The shortest validity. Zero without leases.
inline milliseconds validity_of_all(std::span<const lease> leases) noexcept {
    milliseconds shortest = leases.empty() ? milliseconds(0) : milliseconds::max();
    for (const lease& one : leases) shortest = std::min(shortest, one.validity());
    return shortest;
}

inline bool all_valid(std::span<const lease> leases) noexcept {
    return std::ranges::all_of(leases, [](const lease& one) { return one.validity() > milliseconds(0); });
}

// One stop_token that fires when any lease is lost.
class loss_of_any {
public:
    explicit loss_of_any(std::span<const lease> leases) {
        for (const lease& one : leases) {
            // A callback of the user may release the leases, which destroys this object. The copy survives.
            heard_.push_back(std::make_unique<callback>(one.lost(), [source = source_] {
                std::stop_source kept = source;
                kept.request_stop();
            }));
        }
    }
    std::stop_token token() const noexcept { return source_.get_token(); }

private:
    using callback = std::stop_callback<std::function<void()>>;

    std::stop_source source_;
    std::vector<std::unique_ptr<callback>> heard_;
};

}  // namespace holdfast::api
