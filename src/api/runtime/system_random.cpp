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
            const auto got = ::getrandom(at, missing, 0);
            HOLDFAST_ASSERT(got > 0 || errno == EINTR);
            if (got <= 0) continue;
            at += got;
            missing -= static_cast<std::size_t>(got);
        }
        used_ = 0;
    }
    return pool_[used_++];
}

}  // namespace holdfast::api
