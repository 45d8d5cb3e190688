// Small things about the system that several parts of the command need.
#pragma once

#include "base/clock.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::cli {

// 124 to 127 are as timeout(1), env(1) and nice(1) have them, so that scripts need no second table.
enum exit_code : int {
    all_well = 0,
    not_acquired = 1,      // -E changes it
    not_running = 1,       // of `server status`
    lock_lost = 75,        // EX_TEMPFAIL of sysexits.h: try again later
    own_failure = 125,     // holdfast itself: usage, no server, wrong password
    not_executable = 126,  // the command was found but could not be run
    not_found = 127,
    killed_by_signal = 128,  // plus the signal's number
};

// A sentence for the user; ends the command with own_failure.
struct trouble : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A file descriptor that is closed once.
class unique_fd {
public:
    unique_fd() = default;
    explicit unique_fd(int fd) noexcept : fd_(fd) {}
    ~unique_fd() { reset(); }
    unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    unique_fd& operator=(unique_fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    void reset() noexcept {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

private:
    int fd_ = -1;
};

// Both ends are closed by exec.
struct pipe_ends {
    unique_fd read;
    unique_fd write;
};
pipe_ends make_pipe();

// /dev/null, for reading and writing; closed by exec.
unique_fd open_nowhere();

// What exec wants: pointers into the strings, and a null behind the last.
std::vector<char*> exec_words(const std::vector<std::string>& words);

// Waits until that child has ended; returns its status as waitpid() gives it.
int wait_for_end(pid_t child) noexcept;

// Throws std::system_error with errno; `what` says what was tried.
[[noreturn]] void throw_errno(const std::string& what);

// A line on stderr behind "holdfast: ". Never fails: a message that nobody can read must not end a job.
void tell(std::string_view message) noexcept;

// From now on tell() shows these words, and no earlier ones, wherever a message repeats them, without what may be the
// password of a URL: a URL may stand where no URL belongs. For the arguments of the program, before anything is told.
void hide_passwords_of(const std::vector<std::string>& words);

// Asks at the terminal before what cannot be undone. False also if input or error output is no terminal.
bool user_agrees(const std::string& question);

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
    void lower() noexcept;

private:
    unique_fd fd_;
};

}  // namespace holdfast::cli
