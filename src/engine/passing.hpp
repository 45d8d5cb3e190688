// Refusals of the server that may pass: what must reach it in the end is sent again a little later, and
// whoever waits in line asks again. And what is no answer at all.
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

// Says nothing of the lock, only of the way to the node.
constexpr bool is_silence(errc code) noexcept {
    return code == errc::unreachable || code == errc::connection_refused || code == errc::host_not_found ||
           code == errc::request_timed_out || code == errc::no_primary || code == errc::moving ||
           code == errc::cluster_down;
}

}  // namespace holdfast::engine
