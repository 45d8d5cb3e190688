// Small things about the system that several parts of the command need.
#pragma once

#include "base/clock.hpp"
#include "cli/terminal/unique_fd.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

// Both ends are closed by exec.
struct pipe_ends {
    unique_fd read;
    unique_fd write;
};
pipe_ends make_pipe();

// Throws std::system_error with errno; `what` says what was tried.
[[noreturn]] void throw_errno(const std::string& what);

// A line on stderr behind "holdfast: ". Never fails: a message that nobody can read must not end a job.
void tell(std::string_view message) noexcept;

// For poll(): the milliseconds until then, rounded up, a minute at most; -1 for never. Safe between fork and exec.
int timeout_ms(instant deadline) noexcept;

// The variable's value; empty if it is not set.
std::string environment(const char* name);

// An event that one thread raises and another polls for, beside signals.
class event {
public:
    event();
    int fd() const noexcept { return fd_.get(); }
    void raise() noexcept;

private:
    unique_fd fd_;
};

}  // namespace holdfast::cli
