// Between fork and exec only system calls are made: other threads of the parent may have held any lock. What
// goes wrong there is told to the parent through a pipe that a successful exec closes.
#include "cli/run/child.hpp"

#include <sys/prctl.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace holdfast::cli {
namespace {

struct prepared {
    explicit prepared(const command_line& command)
        : words(exec_words(command.words)), environment(exec_words(command.environment)) {}

    void exec() const noexcept { ::execvpe(words[0], words.data(), environment.data()); }

    std::vector<char*> words;
    std::vector<char*> environment;
};

[[noreturn]] void run_in_child(const prepared& command, const parentage& parent, pid_t parents_pid, int takes_terminal,
                               int trouble_pipe) noexcept {
    ::setpgid(0, 0);
    parent.watcher.enlist_this_process();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parents_pid) ::_exit(own_failure);  // it died before the line above
    if (takes_terminal >= 0) ::tcsetpgrp(takes_terminal, ::getpid());
    parent.signals.restore_inherited();
    command.exec();
    const int why = errno;
    if (::write(trouble_pipe, &why, sizeof why) < 0) ::_exit(own_failure);
    ::_exit(not_found);
}

}  // namespace

exec_failed::exec_failed(const std::string& program, int error)
    : std::runtime_error("cannot run '" + program + "': " + std::strerror(error)),
      status_(error == ENOENT ? not_found : not_executable) {}

pid_t start_child(const command_line& command, const parentage& parent) {
    const prepared ready(command);
    pipe_ends trouble_pipe = make_pipe();
    const bool takes_terminal = parent.tty.is_wanted_at_once();
    const pid_t self = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) throw_errno("fork");
    if (child == 0) {
        run_in_child(ready, parent, self, takes_terminal ? parent.tty.fd() : -1, trouble_pipe.write.get());
    }
    ::setpgid(child, child);  // whoever comes first, parent or child
    if (takes_terminal) parent.tty.was_taken();
    trouble_pipe.write.reset();
    int why = 0;
    ssize_t size = 0;
    while ((size = ::read(trouble_pipe.read.get(), &why, sizeof why)) < 0 && errno == EINTR) continue;
    if (size == 0) return child;
    wait_for_end(child);
    parent.tty.take_back();
    throw exec_failed(command.words.front(), why);
}

void become(const command_line& command, const signal_inbox& signals) {
    const prepared ready(command);
    signals.restore_inherited();
    ready.exec();
    throw exec_failed(command.words.front(), errno);
}

}  // namespace holdfast::cli
