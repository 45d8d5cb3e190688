#include "api/runtime/system_random.hpp"

#include "base/assert.hpp"

#include <sys/random.h>
#include <cerrno>

namespace holdfast::api {

std::uint64_t system_random::next() {
    if (used_ == pool_.size()) {
        auto* at = reinterpret_cast<char*>(pool_.data());
        std::size_t missing = sizeof pool_;
        while (missing > 0) {
            const auto count = ::getrandom(at, missing, 0);
            HOLDFAST_ASSERT(count > 0 || errno == EINTR);
            if (count <= 0) continue;
            at += count;
            missing -= static_cast<std::size_t>(count);
        }
        used_ = 0;
    }
    return pool_[used_++];
}

}  // namespace holdfast::api
