// Starts a program that outlives us: in a session of its own, holding none of our files but one.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace holdfast::cli {

struct daemon_start {
    pid_t pid = -1;
    int error = 0;  // errno of the exec, if it failed
};

// Throws std::system_error if the system has no room for it. Its working directory is `directory`. `mark` is a socket
// that the program listens on, without knowing, and keeps open for as long as it lives.
daemon_start start_daemon(const std::vector<std::string>& words, const std::string& directory, int mark);

}  // namespace holdfast::cli
