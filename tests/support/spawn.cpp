#include "support/spawn.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <queue>
#include <string_view>
#include <system_error>
#include <thread>

#include "support/eventually.hpp"
#include "support/sockets.hpp"

namespace holdfast::testing {
namespace {

// Runs tasks on one thread that lives as long as the process. It is never destroyed: the end of that thread would kill
// all its children.
class forker {
public:
    static forker& instance() {
        static forker* const only = new forker;
        return *only;
    }

    pid_t run(std::function<pid_t()> task) {
        std::packaged_task<pid_t()> packaged{std::move(task)};
        std::future<pid_t> result = packaged.get_future();
        {
            const std::lock_guard guard{mutex_};
            tasks_.push(std::move(packaged));
        }
        wake_.notify_one();
        return result.get();
    }

private:
    forker() {
        std::thread{[this] { loop(); }}.detach();
    }

    void loop() {
        // Other threads handle the signals of the test.
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
        for (;;) {
            std::unique_lock lock{mutex_};
            wake_.wait(lock, [this] { return !tasks_.empty(); });
            std::packaged_task<pid_t()> task = std::move(tasks_.front());
            tasks_.pop();
            lock.unlock();
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::queue<std::packaged_task<pid_t()>> tasks_;
};

// Everything the child needs, prepared before the fork: between fork and exec only async-signal-safe calls are allowed,
// and allocation is not one.
struct prepared {
    std::vector<std::string> strings;
    std::vector<char*> arguments;
    std::vector<char*> environment;
    std::string program;
    std::string directory;
    int descriptors[3];
    process_group group;
};

std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    const char* path = std::getenv("PATH");
    std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
    while (!rest.empty()) {
        const std::size_t colon = std::min(rest.find(':'), rest.size());
        const std::string candidate = std::string{rest.substr(0, colon)} + "/" + name;
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
        rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
    throw std::system_error{ENOENT, std::generic_category(), "no program " + name + " in PATH"};
}

std::vector<std::string> merged_environment(const spawn_request& request) {
    const auto replaced = [&](std::string_view entry) {
        const std::string_view name = entry.substr(0, entry.find('='));
        return std::ranges::any_of(request.environment, [&](const auto& pair) { return pair.first == name; }) ||
               std::ranges::find(request.unset, name) != request.unset.end();
    };
    std::vector<std::string> merged;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        if (!replaced(*entry)) merged.emplace_back(*entry);
    }
    for (const auto& [name, value] : request.environment) merged.push_back(name + "=" + value);
    return merged;
}

prepared prepare(const spawn_request& request) {
    prepared made{.strings = merged_environment(request),
                  .arguments = {},
                  .environment = {},
                  .program = find_program(request.command.at(0)),
                  .directory = request.directory.string(),
                  .descriptors = {request.input, request.output, request.errors},
                  .group = request.group};
    const std::size_t variables = made.strings.size();
    made.strings.insert(made.strings.end(), request.command.begin(), request.command.end());
    for (std::size_t i = 0; i < made.strings.size(); ++i) {
        (i < variables ? made.environment : made.arguments).push_back(made.strings[i].data());
    }
    made.environment.push_back(nullptr);
    made.arguments.push_back(nullptr);
    return made;
}

// A later dup2 must not overwrite a descriptor that is still to be copied: first move all of them above stderr.
bool place_descriptors(const prepared& what) {
    int moved[3];
    for (int i = 0; i < 3; ++i) {
        const int given = what.descriptors[i];
        const int source = given >= 0 ? given : ::open("/dev/null", O_RDWR | O_CLOEXEC);
        moved[i] = ::fcntl(source, F_DUPFD_CLOEXEC, 3);
        if (moved[i] < 0) return false;
    }
    for (int i = 0; i < 3; ++i) {
        if (::dup2(moved[i], i) < 0) return false;
    }
    return true;
}

void close_everything_on_exec() {
    // An inherited socket without CLOEXEC would keep a connection open that the test has closed.
    if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
    for (int fd = 3; fd < 1024; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

[[noreturn]] void become(const prepared& what, pid_t parent, int failure_pipe) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // If the parent died before that call, no signal would come.
    if (::getppid() != parent) ::_exit(127);
    if (what.group == process_group::own) ::setpgid(0, 0);
    bool ready = place_descriptors(what);
    if (ready && !what.directory.empty()) ready = ::chdir(what.directory.c_str()) == 0;
    if (ready) {
        close_everything_on_exec();
        ::signal(SIGPIPE, SIG_DFL);
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::execve(what.program.c_str(), what.arguments.data(), what.environment.data());
    }
    const int reason = errno;
    [[maybe_unused]] const ssize_t told = ::write(failure_pipe, &reason, sizeof reason);
    ::_exit(127);
}

pid_t fork_and_exec(const prepared& what) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe2");
    const unique_fd read_end{ends[0]};
    unique_fd write_end{ends[1]};
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) throw_errno("fork");
    if (pid == 0) become(what, parent, write_end.get());
    write_end.reset();
    // The pipe closes at a successful exec; otherwise it carries the errno.
    int reason = 0;
    ssize_t got;
    do {
        got = ::read(read_end.get(), &reason, sizeof reason);
    } while (got < 0 && errno == EINTR);
    if (got == 0) return pid;
    ::waitpid(pid, nullptr, 0);
    throw std::system_error{reason, std::generic_category(), "cannot run " + what.program};
}

}  // namespace

pid_t spawn(const spawn_request& request) {
    const prepared what = prepare(request);
    return forker::instance().run([&what] { return fork_and_exec(what); });
}

std::optional<int> wait_for_exit(pid_t pid, std::chrono::milliseconds limit) {
    int status = 0;
    const bool ended = eventually(
        [&] {
            const pid_t got = ::waitpid(pid, &status, WNOHANG);
            if (got < 0 && errno != EINTR) throw_errno("waitpid");
            return got == pid;
        },
        limit);
    return ended ? std::optional{status} : std::nullopt;
}

bool process_is_alive(pid_t pid) {
    std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
    std::string stat;
    if (!std::getline(file, stat)) return false;
    // "pid (name) S ...": the name may contain anything, so look after the last parenthesis.
    const std::size_t after = stat.rfind(')');
    const char state = after != std::string::npos && after + 2 < stat.size() ? stat[after + 2] : 'X';
    return state != 'Z' && state != 'X';
}

}  // namespace holdfast::testing
