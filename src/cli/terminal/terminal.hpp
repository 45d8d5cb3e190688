// Who may read the terminal: the process group in its foreground.
//
// The command runs in a group of its own, so that all of it can be signalled. To the terminal that is a background job,
// which is stopped when it reads. So it gets the foreground, until it stops or ends. In a pipeline
// (`holdfast run … | less`) another process of our group may need the terminal, too. There the command gets the
// foreground only after it was stopped because it tried to read.
#pragma once

#include "cli/terminal/system.hpp"

#include <fcntl.h>

namespace holdfast::cli {

class terminal {
public:
    terminal() : fd_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}
    ~terminal() { take_back(); }

    // Both ends of the conversation are the terminal, and it is ours.
    bool is_wanted_at_once() const noexcept {
        return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && is_ours();
    }
    // Our group has the foreground.
    bool is_ours() const noexcept { return fd_ && ::tcgetpgrp(fd_.get()) == ::getpgrp(); }
    bool is_given_away() const noexcept { return given_; }

    // SIGTTOU must be blocked for both.
    void give_to(pid_t group) noexcept { given_ = fd_ && ::tcsetpgrp(fd_.get(), group) == 0; }
    void take_back() noexcept {
        // Fails if the terminal has hung up; then there is nothing to take back.
        if (std::exchange(given_, false) && ::tcsetpgrp(fd_.get(), ::getpgrp()) != 0) return;
    }

    // In the child, between fork and exec.
    int fd() const noexcept { return fd_.get(); }
    // The child has taken it for itself.
    void was_taken() noexcept { given_ = true; }

private:
    unique_fd fd_;  // /dev/tty; none without a controlling terminal
    bool given_ = false;
};

}  // namespace holdfast::cli
