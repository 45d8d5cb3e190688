// Starts a program that cannot outlive the test, however the test ends.
//
// The kernel is asked to kill the child when its parent dies (PR_SET_PDEATHSIG). "Parent" there is the
// *thread* that forked, not the process: a server started by a short-lived test thread would be shot when
// that thread returns. So one thread per process, which never ends, does all the forking.
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
    std::vector<std::string> unset{};                                // taken out of it
    std::filesystem::path directory{};                               // where it runs; empty: where we are
    int input = -1;                                                  // descriptor for stdin; -1: /dev/null
    int output = -1;                                                 // and for stdout
    int errors = -1;                                                 // and for stderr
    process_group group = process_group::inherit;
};

/// The pid of the new process, which is the caller's to wait for. Throws std::system_error if the program
/// cannot be run.
pid_t spawn(const spawn_request& request);

/// Waits for the process at most `limit`; its wait status, or nothing if it still runs. Call until it has answered.
std::optional<int> wait_for_exit(pid_t pid, std::chrono::milliseconds limit);

/// Does the process exist (a zombie does not count)?
bool process_is_alive(pid_t pid);

}  // namespace holdfast::testing
