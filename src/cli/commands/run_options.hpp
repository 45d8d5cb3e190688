// What `holdfast run` was asked to do, from words to values.
#pragma once

#include "cli/commands/view_options.hpp"
#include "cli/run/run_lock.hpp"
#include "cli/run/supervisor.hpp"

#include <vector>

namespace holdfast::cli {

struct run_options : view_options {
    std::string shell;
    std::string wait;
    std::string lease;
    std::string max_lease;
    std::string fence_retention;
    std::string grace = "5s";
    std::string reaction = "kill";
    std::string prefer;
    bool shared = false;
    bool exclusive = false;
    bool no_wait = false;
    bool quiet = false;
    int refused_status = 1;
    std::vector<std::string> words;  // the command, from behind "--"

    // Each throws trouble with the option's name if its value makes no sense.
    patience wait_limit() const;
    side lock_side() const;
    client_options link_options() const;
    std::chrono::milliseconds lease_time() const;
    shared_mutex_options lock_options() const;  // also of a plain lock, which has no preference
    supervision terms() const;
    std::vector<std::string> command() const;
    notices wanted_notices() const { return quiet ? notices::hidden : notices::shown; }
};

void declare(CLI::App& run, run_options& options);

}  // namespace holdfast::cli
