// Signals as something to read, and rests between two looks at a server that a signal ends.
//
// While an inbox lives its signals are blocked in this thread and in all threads that this one starts, and are read
// from a descriptor. So it is made before the client, whose threads must not get them. What the process inherited
// (mask, ignored signals) is kept for the command: under nohup(1) it still ignores SIGHUP.
#pragma once

#include "cli/terminal/system.hpp"

#include <chrono>
#include <csignal>
#include <optional>

namespace holdfast::cli {

class signal_inbox {
public:
    signal_inbox();
    ~signal_inbox();

    int fd() const noexcept { return fd_.get(); }
    // The next signal that has come; nothing if none has.
    std::optional<int> take() noexcept;

    // In a child between fork and exec, or before an exec: everything as it was inherited.
    void restore_inherited() const noexcept;

private:
    sigset_t inherited_mask_{};
    struct sigaction inherited_pipe_ {};
    struct sigaction inherited_child_ {};
    unique_fd fd_;
};

// Those that ask a program to end.
bool asks_to_end(int signal) noexcept;

// Stops this process as Ctrl-Z would and returns when it goes on. Does nothing where nobody could continue it
// (an orphaned process group), as the kernel does for every program there.
void stop_this_process() noexcept;

enum class woken {
    by_time,
    by_input,   // there is something to read
    by_resize,  // the terminal has another size
    by_stop,    // Ctrl-Z: the caller stops itself with stop_this_process()
    by_end,     // asked to end
};

constexpr int no_input = -1;

// Returns after `at_most`, or earlier with the reason. `input` is a descriptor to wait for, too.
woken rest(signal_inbox& signals, std::chrono::milliseconds at_most, int input = no_input);

}  // namespace holdfast::cli
