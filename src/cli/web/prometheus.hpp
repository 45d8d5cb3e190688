// What a server holds, in Prometheus' text form (version 0.0.4), by the prefix of the locks' names: the part before
// the first ':'. Names without one share the empty prefix; a series for every name would be too many.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::cli {

struct scrape {
    std::vector<lock_state> locks;
    std::chrono::microseconds took{0};
    std::size_t servers_up = 1;
    std::size_t members_silent = 0;  // of Clusters that are up
};

std::string prometheus_text(const scrape& seen);
// Of a server that could not be asked.
std::string prometheus_down();

}  // namespace holdfast::cli
