// `holdfast-sim --explore`: explores scopes by their names, lists them, or replays one schedule.
#pragma once

#include <string>
#include <vector>

namespace holdfast::sim::explore {

struct command_options {
    std::string scope;                 // "list": tells their names; "all"
    std::string schedule;              // not empty: replays it
    std::string mutant;                // not empty: breaks that
    std::uint64_t most_schedules = 0;  // 0: no limit
    unsigned jobs = 1;
};

/// Returns the exit status: 1 if a rule was broken.
int run(const command_options& options);

}  // namespace holdfast::sim::explore
