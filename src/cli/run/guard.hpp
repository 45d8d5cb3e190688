// Ends the command when holdfast no longer can.
//
// holdfast may be killed with -9 or stopped, and then neither renews the lock nor watches the command. The
// guard is a second, tiny process that knows two things: the command's process group, and until when the hold
// is valid. It kills the group when holdfast is gone (its end of a pipe closes) or when that instant passes
// without a newer one. It runs in a session of its own, where signals to holdfast's group do not reach it.
//
// PR_SET_PDEATHSIG alone would not do: it reaches the command itself but not what the command has started.
#pragma once

#include "cli/terminal/system.hpp"

namespace holdfast::cli {

class guard {
public:
    guard();
    // Ends the guard without killing, if finish() has not.
    ~guard();

    // In the command's process, between fork and exec: from now on this group is guarded.
    void enlist_this_process() const noexcept;
    // The group may live until then; `never`: as long as holdfast does.
    void allow_until(instant deadline) noexcept;

    enum class verdict { kept_still, killed };
    // The command has ended. Tells whether the guard ended it.
    verdict finish() noexcept;

private:
    unique_fd pipe_;
    pid_t pid_ = -1;
};

}  // namespace holdfast::cli
