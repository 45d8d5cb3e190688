// Starts a program that cannot outlive the test, however the test ends.
//
// The kernel kills the child when its parent dies (PR_SET_PDEATHSIG). "Parent" means the *thread* that forked: a server
// started by a short-lived test thread would be killed when that thread returns. So one thread per process, which never
// ends, does all the forking.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::testing {

enum class process_group { inherit, own };

struct spawn_request {
    std::vector<std::string> command{};  // the program (looked up in PATH) and its arguments
    std::vector<std::pair<std::string, std::string>> environment{};  // added or replaced
    std::vector<std::string> unset{};                                // removed from the environment
    std::filesystem::path directory{};                               // working directory; empty: ours
    int input = -1;                                                  // descriptor for stdin; -1: /dev/null
    int output = -1;                                                 // the same for stdout
    int errors = -1;                                                 // the same for stderr
    process_group group = process_group::inherit;
};

/// The pid of the new process; the caller waits for it. Throws std::system_error if the program cannot be run.
pid_t spawn(const spawn_request& request);

/// Waits at most `limit` for the process; its wait status, or nothing if it still runs. Call until it returns a status.
std::optional<int> wait_for_exit(pid_t pid, std::chrono::milliseconds limit);

/// True if the process exists and is no zombie.
bool process_is_alive(pid_t pid);

}  // namespace holdfast::testing
