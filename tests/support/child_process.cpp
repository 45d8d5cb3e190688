// One thread per child moves bytes between its pipes and our strings, so that neither side blocks the other.
#include "support/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "support/sockets.hpp"
#include "support/stop_event.hpp"

namespace holdfast::testing {
namespace {

struct pipe_ends {
    unique_fd read;
    unique_fd write;
};

pipe_ends make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe2");
    return {unique_fd{ends[0]}, unique_fd{ends[1]}};
}

exit_result decoded(int status) {
    if (WIFEXITED(status)) return {.status = WEXITSTATUS(status), .signal = 0};
    return {.status = -1, .signal = WTERMSIG(status)};
}

// Writing to a child that has closed its stdin must be an error, not end the test by SIGPIPE.
void block_sigpipe() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// A grandchild may keep the pipes open after the child has ended; wait no longer than this for its output.
constexpr std::chrono::seconds drain_limit{2};

}  // namespace

class child_process::state {
public:
    state(const std::filesystem::path& program, child_options options)
        : pending_{std::move(options.input)}, close_when_written_{options.after_input == input_end::closed} {
        pipe_ends in = make_pipe();
        pipe_ends out = make_pipe();
        pipe_ends err = make_pipe();
        spawn_request request{.command = {program.string()},
                              .environment = std::move(options.environment),
                              .unset = std::move(options.unset),
                              .directory = options.directory,
                              .input = in.read.get(),
                              .output = out.write.get(),
                              .errors = err.write.get(),
                              .group = options.group};
        request.command.insert(request.command.end(), options.arguments.begin(), options.arguments.end());
        pid_ = spawn(request);
        input_ = std::move(in.write);
        captures_[0].pipe = std::move(out.read);
        captures_[1].pipe = std::move(err.read);
        changed_.set();  // without input, stdin is closed at once
        set_nonblocking(input_);
        for (const capture& each : captures_) set_nonblocking(each.pipe);
        pump_ = std::thread{[this] { pump(); }};
    }

    ~state() {
        if (!result_) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        stopping_.set();
        pump_.join();
    }

    pid_t pid() const noexcept { return pid_; }

    void signal(int number) {
        if (wait_for(std::chrono::milliseconds{0})) throw std::logic_error{"the program has ended already"};
        if (::kill(pid_, number) != 0) throw_errno("kill");
    }

    std::optional<exit_result> wait_for(std::chrono::milliseconds limit) {
        if (result_) return result_;
        const std::optional<int> status = wait_for_exit(pid_, limit);
        if (!status) return std::nullopt;
        result_ = decoded(*status);
        std::unique_lock lock{mutex_};
        drained_.wait_for(lock, drain_limit, [this] { return all_read_; });
        return result_;
    }

    void write_input(std::string_view more) {
        const std::lock_guard guard{mutex_};
        pending_ += more;
        changed_.set();
    }

    void close_input() {
        const std::lock_guard guard{mutex_};
        close_when_written_ = true;
        changed_.set();
    }

    std::string captured(std::size_t which) const {
        const std::lock_guard guard{mutex_};
        return captures_[which].text;
    }

private:
    struct capture {
        unique_fd pipe{};    // the pump's alone
        std::string text{};  // guarded by mutex_
    };

    void pump() {
        block_sigpipe();
        while (captures_[0].pipe || captures_[1].pipe) {
            std::array<pollfd, 5> waiting = {{{stopping_.descriptor(), POLLIN, 0},
                                              {changed_.descriptor(), POLLIN, 0},
                                              {has_input() ? input_.get() : -1, POLLOUT, 0},
                                              {captures_[0].pipe.get(), POLLIN, 0},
                                              {captures_[1].pipe.get(), POLLIN, 0}}};
            if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) throw_errno("poll");
            if (waiting[0].revents != 0) return;
            if (waiting[1].revents != 0) changed_.clear();
            write_some();
            if (waiting[3].revents != 0) read_some(captures_[0]);
            if (waiting[4].revents != 0) read_some(captures_[1]);
        }
        const std::lock_guard guard{mutex_};
        all_read_ = true;
        drained_.notify_all();
    }

    bool has_input() const {
        const std::lock_guard guard{mutex_};
        return !pending_.empty();
    }

    void write_some() {
        const std::lock_guard guard{mutex_};
        if (!input_) return;
        if (!pending_.empty()) {
            const ssize_t written = ::write(input_.get(), pending_.data(), pending_.size());
            if (written > 0) pending_.erase(0, static_cast<std::size_t>(written));
            if (written < 0 && errno != EAGAIN && errno != EINTR) {
                pending_.clear();
                close_when_written_ = true;
            }
        }
        if (pending_.empty() && close_when_written_) input_.reset();
    }

    void read_some(capture& from) {
        char bytes[4096];
        const ssize_t got = ::read(from.pipe.get(), bytes, sizeof bytes);
        if (got > 0) {
            const std::lock_guard guard{mutex_};
            from.text.append(bytes, static_cast<std::size_t>(got));
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            from.pipe.reset();
        }
    }

    mutable std::mutex mutex_;  // guards pending_, close_when_written_, all_read_ and the captured text
    std::condition_variable drained_;
    std::string pending_;
    bool close_when_written_;
    bool all_read_ = false;
    std::array<capture, 2> captures_;
    unique_fd input_;  // the pump's alone
    stop_event stopping_;
    stop_event changed_;
    pid_t pid_ = 0;
    std::optional<exit_result> result_;
    std::thread pump_;
};

child_process::child_process(const std::filesystem::path& program, child_options options)
    : state_{std::make_unique<state>(program, std::move(options))} {}
child_process::~child_process() = default;
child_process::child_process(child_process&&) noexcept = default;
child_process& child_process::operator=(child_process&&) noexcept = default;

pid_t child_process::pid() const {
    return state_->pid();
}

bool child_process::running() {
    return !wait_for(std::chrono::milliseconds{0});
}

void child_process::signal(int number) {
    state_->signal(number);
}

void child_process::write_input(std::string_view more) {
    state_->write_input(more);
}

void child_process::close_input() {
    state_->close_input();
}

std::optional<exit_result> child_process::wait_for(std::chrono::milliseconds limit) {
    return state_->wait_for(limit);
}

exit_result child_process::wait(std::chrono::milliseconds limit) {
    if (const std::optional<exit_result> result = wait_for(limit)) return *result;
    throw std::runtime_error{"the program did not end in time; it wrote:\n" + output() + errors()};
}

std::string child_process::output() const {
    return state_->captured(0);
}

std::string child_process::errors() const {
    return state_->captured(1);
}

}  // namespace holdfast::testing
