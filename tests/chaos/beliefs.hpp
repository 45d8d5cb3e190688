// The results of workers that guard a store with a lock (lock-set, see worker/worker.hpp).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "chaos/chaos_fixture.hpp"

namespace holdfast::testing {

/// An interval in which a worker believed to hold the lock, and its token.
struct interval {
    std::int64_t from_us = 0;
    std::int64_t to_us = 0;
    std::int64_t token = 0;
};

/// Ends all workers; returns how many updates they report.
inline std::int64_t updates_of(std::vector<worker>& workers) {
    std::int64_t sum = 0;
    for (worker& each : workers) each.process().close_input();
    for (worker& each : workers) {
        EXPECT_EQ(each.finish(), went_well) << each.process().errors();
        sum += to_number(each.wait_for("done").at(1));
    }
    return sum;
}

/// Sorted by their beginning.
inline std::vector<interval> beliefs_of(const std::vector<worker>& workers) {
    std::vector<interval> all;
    for (const worker& each : workers) {
        for (const told_line& line : each.lines("interval")) {
            all.push_back({to_number(line.at(1)), to_number(line.at(2)), to_number(line.at(3))});
        }
    }
    std::ranges::sort(all, {}, &interval::from_us);
    return all;
}

}  // namespace holdfast::testing
