// Between fork and _exit the guard calls nothing but system calls: the process it was forked from has
// threads, any of which may have held the allocator's lock.
#include "cli/run/guard.hpp"

#include "base/boot_clock.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <limits>

namespace holdfast::cli {
namespace {

enum class kind : std::int64_t { group, deadline, finished };

// Shorter than PIPE_BUF, so that writes of two processes do not mix.
struct message {
    kind what;
    std::int64_t value;
};

constexpr int guards_end = 3;

void write_message(int pipe, message text) noexcept {
    // Fails only if the guard is gone; then the command's own death signal is all that is left.
    if (::write(pipe, &text, sizeof text) < 0) return;
}

void close_inherited(int pipe, int nowhere) noexcept {
    ::setsid();
    ::prctl(PR_SET_NAME, "holdfast-guard");
    // Whoever waits for the end of our output or for a lock on an inherited file must not wait for the guard.
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
    const int kept = ::fcntl(pipe, F_DUPFD, guards_end + 1);
    ::dup2(kept, guards_end);
    ::close_range(guards_end + 1, std::numeric_limits<unsigned>::max(), 0);
    if (::chdir("/") != 0) return;  // keeps a file system busy, no more
}

[[noreturn]] void kill_and_exit(pid_t group) noexcept {
    if (group > 0) ::kill(-group, SIGKILL);
    ::_exit(1);
}

[[noreturn]] void stand_guard() noexcept {
    pid_t group = 0;
    instant deadline = never;
    for (;;) {
        pollfd messages{guards_end, POLLIN, 0};
        const int ready = ::poll(&messages, 1, timeout_ms(deadline));
        if (ready == 0 && boot_now() >= deadline) kill_and_exit(group);
        if (ready <= 0) continue;
        message text{};
        const ssize_t size = ::read(guards_end, &text, sizeof text);
        if (size < 0 && errno == EINTR) continue;
        if (size != sizeof text) kill_and_exit(group);
        if (text.what == kind::finished) ::_exit(0);
        if (text.what == kind::group) group = static_cast<pid_t>(text.value);
        if (text.what == kind::deadline) deadline = instant(std::chrono::nanoseconds(text.value));
    }
}

}  // namespace

guard::guard() {
    pipe_ends messages = make_pipe();
    const unique_fd nowhere = open_nowhere();
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_ = ::fork();
    if (pid_ == 0) {
        close_inherited(messages.read.get(), nowhere.get());
        stand_guard();
    }
    const int why = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = why;
    if (pid_ < 0) throw_errno("fork");
    pipe_ = std::move(messages.write);
}

guard::~guard() {
    finish();
}

void guard::enlist_this_process() const noexcept {
    write_message(pipe_.get(), {kind::group, ::getpid()});
}

void guard::allow_until(instant deadline) noexcept {
    write_message(pipe_.get(), {kind::deadline, deadline.time_since_epoch().count()});
}

guard::verdict guard::finish() noexcept {
    if (pid_ < 0) return verdict::kept_still;
    write_message(pipe_.get(), {kind::finished, 0});
    const int status = wait_for_end(pid_);
    pid_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? verdict::killed : verdict::kept_still;
}

}  // namespace holdfast::cli
