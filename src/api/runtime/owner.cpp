#include <holdfast/owner.hpp>

#include "api/runtime/owner_numbers.hpp"

#include <atomic>

namespace holdfast {

std::uint64_t api::next_owner_number() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

owner::owner() : number_(api::next_owner_number()) {}

}  // namespace holdfast
