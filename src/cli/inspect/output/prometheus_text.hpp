// Locks as Prometheus' text form (version 0.0.4), by the prefix of their names: the part before the first ':'. Names
// without one share the empty prefix; a series for every name would be too many.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

constexpr const char* prometheus_type = "text/plain; version=0.0.4; charset=utf-8";

struct scrape {
    std::vector<lock_state> locks;
    microseconds took{0};
    std::size_t servers_up = 1;
    std::size_t members_silent = 0;  // of Clusters that are up
};

std::string prometheus_text(const scrape& seen);
// Instead, when the server, or a majority of several, could not be asked: that is news, too.
std::string prometheus_of_silence();

// A look at all locks. What fewer than a majority say is no hold, and what others hold is not known then: throws
// holdfast::error.
scrape scrape_locks(server_set& servers, std::string_view prefix);

}  // namespace holdfast::cli
