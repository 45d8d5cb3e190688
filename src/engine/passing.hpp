// Refusals of the server that may pass: what must reach it in the end is sent again a little later, and
// whoever waits in line asks again.
#pragma once

#include <holdfast/errors.hpp>

#include <chrono>

namespace holdfast::engine {

constexpr std::chrono::milliseconds again_after{100};

constexpr bool may_pass(errc code) noexcept {
    switch (code) {
        case errc::busy_script:
        case errc::cluster_down:
        case errc::loading:
        case errc::misconfigured:
        case errc::moving:
        case errc::out_of_memory:
        case errc::read_only:
            return true;
        default:
            return false;
    }
}

}  // namespace holdfast::engine
