// Observes renewals from outside.
#pragma once

#include <string>
#include <utility>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing {

/// True once the key's expiry has been extended this many times.
[[nodiscard]] inline bool is_renewed(redis_server& server, const std::string& key, int times = 1) {
    auto left_ms = server.call({"PTTL", key}).integer;
    return eventually(
        [&] {
            const auto before = std::exchange(left_ms, server.call({"PTTL", key}).integer);
            if (left_ms > before) --times;
            return times == 0;
        },
        std::chrono::seconds{30});
}

}  // namespace holdfast::testing
