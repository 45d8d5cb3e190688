#include "cli/terminal/terminal.hpp"

#include <fcntl.h>

namespace holdfast::cli {

terminal::terminal() : fd_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

bool terminal::is_ours() const noexcept {
    return fd_ && ::tcgetpgrp(fd_.get()) == ::getpgrp();
}

bool terminal::is_wanted_at_once() const noexcept {
    return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && is_ours();
}

void terminal::give_to(pid_t group) noexcept {
    given_ = fd_ && ::tcsetpgrp(fd_.get(), group) == 0;
}

void terminal::take_back() noexcept {
    if (!given_) return;
    given_ = false;
    // Fails if the terminal has hung up; then there is nothing to take back.
    if (::tcsetpgrp(fd_.get(), ::getpgrp()) != 0) return;
}

}  // namespace holdfast::cli
