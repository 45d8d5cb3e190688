// Many days, on several threads, and what became of them all.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "world/day.hpp"

namespace holdfast::sim {

struct campaign_options {
    std::uint64_t first_seed = 1;
    std::uint64_t seeds = 2000;
    unsigned jobs = 1;
    std::uint64_t counted = 2000;  // on so many of the first days the scripts' lines are counted; that is slow
    day_options day;               // its seed and engine are set by the campaign
    std::function<void(std::uint64_t done)> progress;
    enum class after_a_find : std::uint8_t { stop, go_on } then = after_a_find::stop;
};

struct campaign_result {
    struct find {
        std::uint64_t seed;
        std::string verdict;
    };
    std::optional<find> found;  // that with the smallest seed of those seen
    std::map<std::uint64_t, std::string> finds;
    std::uint64_t days = 0;
    std::array<std::uint64_t, mishap_kinds> mishaps{};
    std::uint64_t takeovers = 0;
    std::uint64_t holds = 0;
    std::uint64_t scripts = 0;
    nanoseconds simulated{0};
    /// By Lua file: lines with code, and those of them that never ran in any script that has them.
    std::map<std::string, std::set<int>> lines;
    std::map<std::string, std::set<int>> missed;
};

campaign_result run_campaign(const campaign_options& options);

}  // namespace holdfast::sim
