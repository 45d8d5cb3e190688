// Starts a program that outlives us: in a session of its own, holding none of our files.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace holdfast::cli {

struct daemon_start {
    pid_t pid = -1;
    int error = 0;  // errno of the exec, if it failed
};

// Throws std::system_error if the system has no room for it. Its working directory is `directory`.
daemon_start start_daemon(const std::vector<std::string>& words, const std::string& directory);

}  // namespace holdfast::cli
