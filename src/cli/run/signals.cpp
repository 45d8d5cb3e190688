#include "cli/run/signals.hpp"

#include "cli/terminal/system.hpp"

#include <pthread.h>
#include <sys/signalfd.h>

#include <array>

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

}  // namespace holdfast::cli
