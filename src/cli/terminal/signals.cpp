#include "cli/terminal/signals.hpp"

#include "base/boot_clock.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>

namespace holdfast::cli {
namespace {

constexpr std::array read_from_inbox{SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                     SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD};

sigset_t inbox_set() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : read_from_inbox) sigaddset(&set, signal);
    return set;
}

}  // namespace

signal_inbox::signal_inbox() {
    const sigset_t wanted = inbox_set();
    sigset_t blocked = wanted;
    sigaddset(&blocked, SIGTTOU);  // so that the terminal can be handed on from the background
    pthread_sigmask(SIG_BLOCK, &blocked, &inherited_mask_);
    // An ignored SIGCHLD would make the system reap the command without telling how it ended, and a reader of
    // our messages that goes away must not end the job.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &inherited_child_);
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignored, &inherited_pipe_);
    fd_ = unique_fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) throw_errno("signalfd");
}

signal_inbox::~signal_inbox() {
    restore_inherited();
}

std::optional<int> signal_inbox::take() noexcept {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
}

void signal_inbox::restore_inherited() const noexcept {
    sigaction(SIGCHLD, &inherited_child_, nullptr);
    sigaction(SIGPIPE, &inherited_pipe_, nullptr);
    pthread_sigmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

bool asks_to_end(int signal) noexcept {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

void stop_this_process() noexcept {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigset_t before;
    ::raise(SIGTSTP);  // pending, because it is blocked
    pthread_sigmask(SIG_UNBLOCK, &stop, &before);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

woken rest(signal_inbox& signals, std::chrono::milliseconds at_most, int input) {
    const instant until = boot_now() + at_most;
    for (;;) {
        while (const auto signal = signals.take()) {
            if (asks_to_end(*signal)) return woken::by_end;
            if (*signal == SIGTSTP) return woken::by_stop;
            if (*signal == SIGWINCH) return woken::by_resize;
        }
        if (boot_now() >= until) return woken::by_time;
        // poll() leaves out a descriptor that is negative.
        std::array<pollfd, 2> events{{{signals.fd(), POLLIN, 0}, {input, POLLIN, 0}}};
        const int ready = ::poll(events.data(), events.size(), timeout_ms(until));
        if (ready < 0 && errno != EINTR) throw_errno("poll");
        if (ready > 0 && events[1].revents != 0) return woken::by_input;
    }
}

}  // namespace holdfast::cli
