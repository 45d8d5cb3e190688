// `holdfast-sim --explore`: explores scopes by their names, lists them, or replays one schedule.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace holdfast::sim::explore {

struct command_options {
    std::string scope;                 // several with commas between them; "all"; "list": tells their names
    std::string schedule;              // not empty: replays it
    std::string mutant;                // not empty: breaks that; "all": tells which scope finds which mutant
    std::uint64_t most_schedules = 0;  // 0: no limit
    // Instead of the scopes' own limits.
    std::optional<unsigned> most_waits = {};
    std::optional<unsigned> most_deviations = {};
    std::optional<unsigned> horizon_ms = {};
    unsigned jobs = 1;
};

/// Returns the exit status: 1 if a rule was broken.
int run(const command_options& options);

}  // namespace holdfast::sim::explore
