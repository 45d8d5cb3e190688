// holdfast lock and holdfast unlock: a lock for a shell, without a command that runs under it.
//
// `holdfast lock` forks. The child waits in the queue, as a member of the shell's job, so that its status line is seen
// and Ctrl-C reaches it. When it has the lock it leaves terminal and session, and the parent prints the token and ends.
// From then on the child is the holder: it renews, answers `holdfast unlock`, and releases the lock when the shell ends
// or, with --fd, when nobody has that descriptor open any more.
#include "cli/commands/lock_attempt.hpp"
#include "cli/run/shell_hold.hpp"
#include "cli/run/supervisor.hpp"
#include "cli/terminal/text.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr int no_fd = -1;

struct shell_options : run_options {
    pid_t shell = 0;  // 0: the parent
    int fd = no_fd;
    std::string status_file;

    pid_t owner() const {
        if (shell != 0) return shell;
        if (!may_be_shell(::getppid()))
            throw trouble("no shell called this; --pid says for which process to hold the lock");
        return ::getppid();
    }
};

unique_fd open_process(pid_t process) {
    unique_fd life(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
    if (!life) throw trouble(fmt::format("process {}, for which to hold the lock: {}", process, std::strerror(errno)));
    return life;
}

// Tells when nobody has the file open any more that somebody gave us as a descriptor.
//
// A lock of the kernel on one byte belongs to the open file: it ends with the last descriptor of it, whoever has that.
// The same file, opened anew, waits for that byte. Each holder has a byte of its own, far behind what files have; by
// chance, as others may come from other machines or containers.
class descriptor_watch {
public:
    // Throws trouble if that is no file that can be locked.
    explicit descriptor_watch(int fd) {
        struct flock byte = own_byte();
        if (::fcntl(fd, F_OFD_SETLK, &byte) != 0) throw_useless(fd);
        own_ = unique_fd(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDWR | O_CLOEXEC));
        if (!own_) throw_useless(fd);
        ::close(fd);
        std::thread([this] {
            struct flock same = own_byte();
            while (::fcntl(own_.get(), F_OFD_SETLKW, &same) != 0 && errno == EINTR) continue;
            closed_.raise();
        }).detach();  // this process ends with _exit(), whether it still waits or not
    }
    int closed() const noexcept { return closed_.fd(); }

private:
    struct flock own_byte() const {
        struct flock byte {};
        byte.l_type = F_WRLCK;
        byte.l_whence = SEEK_SET;
        byte.l_start = place_;
        byte.l_len = 1;
        return byte;
    }
    static off_t some_place() {
        std::random_device chance;
        return (off_t{1} << 40U) + (off_t{chance() >> 2U} << 32U) + off_t{chance()};
    }
    [[noreturn]] static void throw_useless(int fd) {
        throw trouble(fmt::format("--fd {0}: {1}; it must be a file that is open for writing, as after exec {0}>>FILE",
                                  fd, std::strerror(errno)));
    }

    const off_t place_ = some_place();
    unique_fd own_;
    event closed_;
};

// What the child tells the parent once it holds the lock.
struct acquisition_report {
    std::uint64_t token = 0;
};

// The child, from when it has the lock.
class shell_holder {
public:
    shell_holder(const shell_options& options, lease hold, unique_fd life, unique_fd listener,
                 std::unique_ptr<descriptor_watch> descriptor)
        : options_(options),
          lease_(options.lease_time()),
          hold_(std::move(hold)),
          life_(std::move(life)),
          listener_(std::move(listener)),
          descriptor_(std::move(descriptor)),
          id_(hold_.id()),
          on_loss_(hold_.lost(), [this] { lost_event_.raise(); }) {
        if (options.status_file.empty()) return;
        status_file_ = std::filesystem::absolute(options.status_file).string();
        if (write_status(fmt::format("held {}", hold_.token()))) return;
        const std::string why = std::strerror(errno);
        hold_.release();
        throw trouble(fmt::format("--status-file {}: {}", options.status_file, why));
    }

    void serve(signal_inbox& signals, int parent) {
        ::listen(listener_.get(), SOMAXCONN);
        leave_the_terminal();
        if (!is_known_to(parent)) return release_at_end();
        ::close(parent);
        while (!over_) wait_for_event(signals);
    }

private:
    static void leave_the_terminal() {
        ::prctl(PR_SET_PDEATHSIG, 0);
        ::prctl(PR_SET_NAME, "holdfast-lock");
        ::setsid();
        const unique_fd nowhere = open_nowhere();
        for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere.get(), standard);
        if (::chdir("/") != 0) return;  // keeps a file system busy, no more
    }

    // Whether the token was printed. Otherwise nobody knows of the hold.
    bool is_known_to(int parent) const {
        const acquisition_report told{hold_.token()};
        char printed = 0;
        return ::send(parent, &told, sizeof told, MSG_NOSIGNAL) == sizeof told &&
               ::recv(parent, &printed, sizeof printed, MSG_WAITALL) == sizeof printed;
    }

    void wait_for_event(signal_inbox& signals) {
        const int gone = descriptor_ ? descriptor_->closed() : life_.get();
        // poll() leaves out a descriptor that is negative. What lost_event_ has to say is heard once.
        std::array<pollfd, 4> events{{{signals.fd(), POLLIN, 0},
                                      {gone, POLLIN, 0},
                                      {listener_.get(), POLLIN, 0},
                                      {why_lost_.empty() ? lost_event_.fd() : no_fd, POLLIN, 0}}};
        if (::poll(events.data(), events.size(), -1) < 0) return;
        if (events[3].revents != 0) lose(reason_of_loss(hold_, lease_));
        if (events[1].revents != 0) return release_at_end();
        while (const auto signal = signals.take()) {
            if (!asks_to_end(*signal)) continue;
            if (why_lost_.empty()) lose("its holder in the background was asked to end");
            return release_at_end();
        }
        if (events[2].revents == 0) return;
        if (auto who = next_asker(listener_.get())) answer(*who);
    }

    void answer(asker& who) {
        if (who.question == "tell") return who.answer(fmt::format("{} {}", hold_.token(), id_));
        if (who.question != "release") return;
        const auto failed = hold_.release();
        if (why_lost_.empty() && failed) why_lost_ = failed.message();
        write_status(why_lost_.empty() ? "released" : "lost: " + why_lost_);
        over_ = true;
        if (why_lost_.empty()) return who.answer(fmt::format("{} ", int{all_well}));
        who.answer(fmt::format("{} the lock '{}' was lost: {}", int{lock_lost}, excerpt(options_.name), why_lost_));
    }

    // The hold is kept, if the servers still have it, until the shell has ended.
    void lose(std::string why) {
        why_lost_ = std::move(why);
        write_status("lost: " + why_lost_);
        if (options_.reaction == "kill") ::syscall(SYS_pidfd_send_signal, life_.get(), SIGTERM, nullptr, 0);
    }

    void release_at_end() {
        over_ = true;
        hold_.release();
        if (why_lost_.empty()) write_status("released");
    }

    // In one step, so that a reader never finds half of it. False, and errno, if the file cannot be written.
    bool write_status(const std::string& text) const {
        if (status_file_.empty()) return true;
        const std::string unfinished = status_file_ + ".new";
        std::ofstream file(unfinished, std::ios::trunc);
        file << text << "\n";
        file.close();
        if (file.good() && std::rename(unfinished.c_str(), status_file_.c_str()) == 0) return true;
        const int why = errno;
        ::unlink(unfinished.c_str());
        errno = why;
        return false;
    }

    const shell_options& options_;
    milliseconds lease_;
    lease hold_;
    unique_fd life_;
    unique_fd listener_;
    std::unique_ptr<descriptor_watch> descriptor_;  // null: it is the shell's end that counts
    std::string id_;
    std::string status_file_;
    std::string why_lost_;  // empty: it is not lost
    bool over_ = false;
    event lost_event_;
    std::stop_callback<std::function<void()>> on_loss_;
};

void close_all_but(std::vector<int> kept) {
    std::vector<int> open;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        const auto number = whole_number(entry.path().filename().string());
        if (number && *number > STDERR_FILENO) open.push_back(static_cast<int>(*number));
    }
    for (const int fd : open) {
        if (std::ranges::find(kept, fd) == kept.end()) ::close(fd);
    }
}

// The child. Returns what it ends with.
int hold_for_shell(const shell_options& options, unique_fd life, signal_inbox& signals, int parent) {
    // Whoever waits for the end of a file that the shell has open must not wait for the holder.
    close_all_but({life.get(), signals.fd(), parent, options.fd});
    std::unique_ptr<descriptor_watch> descriptor;
    if (options.fd != no_fd) descriptor = std::make_unique<descriptor_watch>(options.fd);
    lock_attempt attempt(options);
    attempt.choose_servers();
    const lock_location where = attempt.where();
    unique_fd listener = socket_for_shell(options.shell, where);
    if (!listener) {
        throw trouble(fmt::format("this shell has the lock '{}' already, or waits for it; holdfast unlock releases it",
                                  options.name));
    }
    auto above = held_list::parse(environment("HOLDFAST_HELD")).find(where);
    if (!above) above = hold_of_shell_above(where);
    if (above && attempt.may_borrow(*above)) {
        throw trouble(fmt::format("a process above this shell holds the lock '{}' already", options.name));
    }
    show_program("lock");
    client link = attempt.connect();
    waited result = attempt.wait(link, signals);
    if (result.signal) return killed_by_signal + *result.signal;
    if (!result.hold) return attempt.refused(link);
    shell_holder holder(options, std::move(result.hold), std::move(life), std::move(listener), std::move(descriptor));
    holder.serve(signals, parent);
    return all_well;
}

int run_child(const shell_options& options, unique_fd life, signal_inbox& signals, int parent) noexcept {
    try {
        return hold_for_shell(options, std::move(life), signals, parent);
    } catch (const std::exception& why) {
        tell(why.what());
        return own_failure;
    }
}

// Prints the token and tells the child so. A child that does not hear it releases the lock.
bool is_printed(std::uint64_t token, unique_fd& child) {
    std::cout << token << "\n" << std::flush;
    const char printed = 1;
    if (std::cout && ::send(child.get(), &printed, sizeof printed, MSG_NOSIGNAL) == sizeof printed) return true;
    tell("the token could not be printed: the lock is released");
    child.reset();
    return false;
}

// The parent, until the child has the lock or has ended.
int await(pid_t child, unique_fd link, signal_inbox& signals) {
    for (;;) {
        std::array<pollfd, 2> events{{{link.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
        if (::poll(events.data(), events.size(), -1) < 0) continue;
        while (const auto signal = signals.take()) {
            if (*signal == SIGTSTP) stop_this_process();
            if (asks_to_end(*signal)) ::kill(child, *signal);
        }
        if (events[0].revents == 0) continue;
        acquisition_report told;
        const bool has_it = ::recv(link.get(), &told, sizeof told, MSG_WAITALL) == sizeof told;
        if (has_it && is_printed(told.token, link)) return all_well;
        const int status = wait_for_end(child);
        return !has_it && WIFEXITED(status) ? WEXITSTATUS(status) : own_failure;
    }
}

int lock(const shell_options& options) {
    if (options.reaction != "kill" && options.reaction != "warn") {
        throw trouble(fmt::format("--on-lost {}: it is kill or warn", options.reaction));
    }
    const lock_attempt understood(options);
    const pid_t owner = options.owner();
    unique_fd life = open_process(owner);
    signal_inbox signals;
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_errno("socketpair");
    unique_fd parents_end(ends[0]);
    unique_fd childs_end(ends[1]);
    const pid_t self = ::getpid();
    shell_options childs = options;
    childs.shell = owner;
    const pid_t child = ::fork();
    if (child < 0) throw_errno("fork");
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // until it has the lock
        if (::getppid() != self) ::_exit(own_failure);
        parents_end.reset();
        ::_exit(run_child(childs, std::move(life), signals, childs_end.get()));
    }
    childs_end.reset();
    return await(child, std::move(parents_end), signals);
}

int unlock(const shell_options& options) {
    const server_choice choice = choose_servers(options.servers, notices::shown, local_start::never);
    const std::vector<pid_t> shells = options.shell == 0 ? ancestors() : std::vector{options.shell};
    const auto told = ask_holder(shells, {choice.identity, options.lock().keys.lock()}, "release");
    if (!told) {
        tell(fmt::format("this shell does not hold the lock '{}' by holdfast lock", excerpt(options.name)));
        return not_acquired;
    }
    const std::size_t blank = std::min(told->find(' '), told->size());
    const auto status = whole_number(std::string_view(*told).substr(0, blank));
    if (!status) throw trouble("the holder of the lock does not answer; it releases the lock when the shell ends");
    if (blank + 1 < told->size()) tell(told->substr(blank + 1));
    return static_cast<int>(*status);
}

void declare_shell(CLI::App& command, shell_options& options) {
    command.add_option("--pid", options.shell, "the shell (the process that calls this)")->type_name("PID");
}

}  // namespace

void add_lock(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<shell_options>(app, "lock", "hold a lock for this shell, until unlock or its end", status, lock);
    declare_lock_options(*command, *options);
    declare_shell(*command, *options);
    command->add_option("--fd", options->fd, "hold it as long as somebody has this file open, as flock(1)")
        ->type_name("N")
        ->check(CLI::Range(3, 1 << 20).description(""));  // which would be part of the help
    command->add_option("--on-lost", options->reaction, "kill: TERM to the shell if the lock is lost (kill)")
        ->type_name("kill|warn");
    command->add_option("--status-file", options->status_file, "says: held TOKEN, released, or lost: WHY")
        ->type_name("FILE");
    command->footer(
        "Prints the fencing token. A process in the background holds the lock, until `holdfast unlock` or until the\n"
        "shell ends, however that ends. If the lock is lost the shell gets TERM, but not what it has started: where\n"
        "that matters, use `holdfast run`.\n\n"
        "  token=$(holdfast lock nightly) || exit\n"
        "  ...\n"
        "  holdfast unlock nightly || echo 'it was lost meanwhile'");
}

void add_unlock(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<shell_options>(app, "unlock", "release what lock holds for this shell", status, unlock);
    declare_lock(*command, *options);
    declare_shell(*command, *options);
    declare_server(*command, *options);
    command->footer("Exit status: 0 released; 1 this shell does not hold it; 75 it was lost; 125 holdfast failed.");
}

}  // namespace holdfast::cli
