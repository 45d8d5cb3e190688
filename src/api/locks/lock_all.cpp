#include <holdfast/lock_all.hpp>

#include "api/locks/together.hpp"
#include "api/operations/hold_face.hpp"

#include <algorithm>
#include <numeric>

namespace holdfast {

lock_all::lock_all(std::vector<lock_request> locks, acquire_options options) : leases_(locks.size()) {
    if (!options.owner) options.owner.emplace();  // one owner for all locks, so that a lock named twice is re-entered
    std::vector<std::size_t> order(locks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // Of one lock: exclusively first, so that reading re-enters and is no upgrade.
    const auto rank = [&](std::size_t i) {
        return std::pair(locks[i].lock().sort_key(), locks[i].how() == mode::shared);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    // In one round trip if all are free; one that is waited for is waited for in order.
    bool have_all = lockable::try_acquire_together(locks, options, leases_);
    while (!have_all || !api::all_valid(leases_)) {
        give_all_back();
        try {
            for (const std::size_t i : order) {
                leases_[i] = locks[i].lock().acquire_as(locks[i].how(), detail::for_ever, options);
            }
        } catch (...) {
            give_all_back();
            throw;
        }
        have_all = true;  // but one may have been lost during the wait for a later one
    }
    loss_ = std::make_unique<api::loss_of_any>(leases_);
}

lock_all::lock_all(lock_all&&) noexcept = default;

lock_all::~lock_all() {
    give_all_back();
}

void lock_all::give_all_back() noexcept {
    loss_.reset();
    api::lease_access::release_together(leases_);
}

milliseconds lock_all::validity() const noexcept {
    return api::validity_of_all(leases_);
}

std::stop_token lock_all::lost() const noexcept {
    return loss_ ? loss_->token() : std::stop_token();
}

}  // namespace holdfast
