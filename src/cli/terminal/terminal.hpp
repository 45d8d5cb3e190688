// Who may read the terminal: the process group in its foreground.
//
// The command runs in a group of its own, so that all of it can be signalled. To the terminal that is a
// background job, which is stopped when it reads. So the foreground is handed to it, and taken back when it
// stops or ends.
//
// In a pipeline (`holdfast run … | less`) somebody else in our group may need the terminal, too. There the
// command gets the foreground only when it was stopped for want of it.
#pragma once

#include "cli/terminal/system.hpp"

namespace holdfast::cli {

class terminal {
public:
    terminal();
    ~terminal() { take_back(); }

    // Both ends of the conversation are the terminal, and it is ours.
    bool is_wanted_at_once() const noexcept;
    // Our group has the foreground.
    bool is_ours() const noexcept;
    bool is_given_away() const noexcept { return given_; }

    // SIGTTOU must be blocked for both.
    void give_to(pid_t group) noexcept;
    void take_back() noexcept;

    // In the child, between fork and exec.
    int fd() const noexcept { return fd_.get(); }
    // The child has taken it for itself.
    void was_taken() noexcept { given_ = true; }

private:
    unique_fd fd_;  // /dev/tty; none without a controlling terminal
    bool given_ = false;
};

}  // namespace holdfast::cli
