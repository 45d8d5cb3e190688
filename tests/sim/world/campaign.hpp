// Runs many scenarios on several threads and adds up their results.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "world/scenario.hpp"

namespace holdfast::sim {

struct campaign_options {
    std::uint64_t first_seed = 1;
    std::uint64_t seeds = 2000;
    unsigned jobs = 1;
    std::uint64_t counted = 2000;  // number of first scenarios in which the lines of scripts are counted, which is slow
    scenario_options scenario;     // the campaign sets its seed and engine
    std::function<void(std::uint64_t done)> progress;
    enum class after_violation : std::uint8_t { stop, go_on } then = after_violation::stop;
};

struct campaign_result {
    struct found_violation {
        std::uint64_t seed;
        std::string verdict;
    };
    std::optional<found_violation> violation;  // the one with the smallest seed
    std::map<std::uint64_t, std::string> violations;
    std::uint64_t scenarios = 0;
    std::array<std::uint64_t, fault_kinds> faults{};
    std::uint64_t takeovers = 0;
    std::uint64_t holds = 0;
    std::uint64_t scripts = 0;
    nanoseconds simulated{0};
    /// By Lua file: the lines with code, and those that never ran in any script that includes them.
    std::map<std::string, std::set<int>> lines;
    std::map<std::string, std::set<int>> missed;
};

campaign_result run_campaign(const campaign_options& options);

}  // namespace holdfast::sim
