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
    std::string delay;
    std::string max_lease;
    std::string fence_retention;
    std::string clock_skew;
    std::string grace = "5s";
    std::string reaction = "kill";
    std::string prefer;
    std::string trace;
    std::optional<std::string> note;
    bool shared = false;
    bool exclusive = false;
    bool no_wait = false;
    bool quiet = false;
    bool mistrust_restarts = false;
    unsigned replicas = 0;
    std::size_t slot_limit = 0;  // 0: no semaphore
    std::size_t slots_taken = 0;
    int refused_status = 1;
    std::vector<std::string> words;  // the command

    // Each throws trouble with the option's name if its value makes no sense.
    patience wait_limit() const;
    side lock_side() const;
    slots wanted_slots() const;
    client_options link_options() const;
    std::chrono::milliseconds lease_time() const;
    std::chrono::milliseconds delay_time() const;
    shared_mutex_options lock_options() const;  // also of a plain lock, which has no preference
    supervision terms() const;
    std::vector<std::string> command() const;
    std::string note_text() const;  // empty: none
    notices wanted_notices() const { return quiet ? notices::hidden : notices::shown; }
};

// Those about the lock: all that `lock` has, too.
void declare_lock_options(CLI::App& command, run_options& options);
void declare(CLI::App& run, run_options& options);
// Of `elect`, whose lock is always a plain one.
void declare_election(CLI::App& elect, run_options& options, std::string& value);

// The command: what stands behind "--" or, where there is no "--", what is left behind NAME, as flock(1) has it.
// Throws trouble if words are left in front of "--", or an option that run does not have.
std::vector<std::string> command_words(const std::optional<std::vector<std::string>>& behind_dashes,
                                       const std::vector<std::string>& left, std::string_view command = "run");

}  // namespace holdfast::cli
