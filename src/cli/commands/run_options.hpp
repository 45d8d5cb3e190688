// What `holdfast run` was asked to do, from words to values.
#pragma once

#include "cli/run/supervisor.hpp"
#include "cli/run/waiting.hpp"
#include "cli/server/server_choice.hpp"
#include "wire/keys.hpp"

#include <holdfast/options.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::cli {

struct run_options {
    std::string name;
    server_words servers;
    std::string prefix = std::string(wire::default_prefix);
    std::string shell;
    std::string wait;
    std::string lease;
    std::string max_lease;
    std::string fence_retention;
    std::string grace = "5s";
    std::string keys = "tagged";
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
    lock_ref lock() const;
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
