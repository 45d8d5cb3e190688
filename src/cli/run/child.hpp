// The command that runs under the lock: a process in a group of its own.
#pragma once

#include "cli/run/guard.hpp"
#include "cli/terminal/signals.hpp"
#include "cli/terminal/terminal.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace holdfast::cli {

struct command_line {
    std::vector<std::string> words;
    std::vector<std::string> environment;  // NAME=value
};

// The command could not be run; what() is a sentence, status() what holdfast exits with: 126 or 127.
class exec_failed : public std::runtime_error {
public:
    exec_failed(const std::string& program, int error);
    int status() const noexcept { return status_; }

private:
    int status_;
};

// What the new process needs of its parent.
struct parentage {
    const signal_inbox& signals;
    const guard& watcher;
    terminal& tty;
};

// Returns the child's pid, which is its group's, once the command itself runs. Throws exec_failed.
// Called on the main thread: the child's death signal is bound to the thread that forked it.
pid_t start_child(const command_line& command, const parentage& parent);

// Becomes the command; returns only by throwing exec_failed.
[[noreturn]] void become(const command_line& command, const signal_inbox& signals);

}  // namespace holdfast::cli
