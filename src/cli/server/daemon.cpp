// Forks twice: the first child leads a new session and ends, so that the second can never get a terminal and
// is nobody's child but the system's. Only system calls between fork and exec.
#include "cli/server/daemon.hpp"

#include "cli/terminal/system.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <limits>

namespace holdfast::cli {
namespace {

constexpr int report_end = 3;
constexpr int mark_end = 4;

void report(daemon_start facts) noexcept {
    if (::write(report_end, &facts, sizeof facts) < 0) ::_exit(1);
}

void leave_everything(int reports, int mark, int nowhere) noexcept {
    ::setsid();
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
    const int kept_reports = ::fcntl(reports, F_DUPFD, mark_end + 1);
    const int kept_mark = ::fcntl(mark, F_DUPFD, mark_end + 1);
    ::dup3(kept_reports, report_end, O_CLOEXEC);
    ::dup2(kept_mark, mark_end);
    ::close_range(mark_end + 1, std::numeric_limits<unsigned>::max(), 0);
    sigset_t none;
    sigemptyset(&none);
    for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE, SIGCHLD}) ::signal(signal, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void exec_daemon(char* const* words, const char* directory) noexcept {
    report({::getpid(), 0});
    ::listen(mark_end, SOMAXCONN);  // here: whoever connects learns the pid of the one who called it
    if (::chdir(directory) == 0) ::execvp(words[0], words);
    report({::getpid(), errno});
    ::_exit(1);
}

// All that was reported before every end of the pipe was closed, by the exec or by the failure.
daemon_start read_reports(int reports) {
    daemon_start latest;
    daemon_start next;
    for (;;) {
        const ssize_t size = ::read(reports, &next, sizeof next);
        if (size < 0 && errno == EINTR) continue;
        if (size != sizeof next) return latest;
        latest = next;
    }
}

}  // namespace

daemon_start start_daemon(const std::vector<std::string>& words, const std::string& directory, int mark) {
    const std::vector<char*> pointers = exec_words(words);
    pipe_ends reports = make_pipe();
    const unique_fd nowhere = open_nowhere();
    const pid_t first = ::fork();
    if (first < 0) throw_errno("fork");
    if (first == 0) {
        leave_everything(reports.write.get(), mark, nowhere.get());
        const pid_t second = ::fork();
        if (second == 0) exec_daemon(pointers.data(), directory.c_str());
        if (second < 0) report({-1, errno});
        ::_exit(0);
    }
    reports.write.reset();
    const daemon_start result = read_reports(reports.read.get());
    wait_for_end(first);
    return result;
}

}  // namespace holdfast::cli
