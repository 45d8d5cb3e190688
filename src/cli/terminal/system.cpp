#include "cli/terminal/system.hpp"

#include "base/boot_clock.hpp"
#include "redis/url/server_url.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <system_error>

namespace holdfast::cli {
namespace {

struct hidden_text {
    std::string original;
    std::string shown;
};

std::vector<hidden_text>& hidden_texts() {
    static std::vector<hidden_text> all;
    return all;
}

std::string without_passwords(std::string_view message) {
    std::string shown(message);
    for (const auto& [original, instead] : hidden_texts()) {
        for (std::size_t at = shown.find(original); at != shown.npos; at = shown.find(original, at + instead.size())) {
            shown.replace(at, original.size(), instead);
        }
    }
    return shown;
}

}  // namespace

void throw_errno(const std::string& what) {
    throw std::system_error(errno, std::system_category(), what);
}

pipe_ends make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe");
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

unique_fd open_nowhere() {
    unique_fd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!nowhere) throw_errno("/dev/null");
    return nowhere;
}

std::vector<char*> exec_words(const std::vector<std::string>& words) {
    std::vector<char*> result;
    for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
    result.push_back(nullptr);
    return result;
}

int wait_for_end(pid_t child) noexcept {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

void tell(std::string_view message) noexcept {
    try {
        // One write, so that the lines of processes that compete for a lock do not mix.
        const std::string line = "holdfast: " + without_passwords(message) + "\n";
        if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
    } catch (const std::bad_alloc&) {
        return;
    }
}

void hide_passwords_of(const std::vector<std::string>& words) {
    hidden_texts().clear();
    // What stands before "://" may not be repeated with it: `--option=URL`, and `-qURL`, are taken apart.
    constexpr std::string_view scheme = "redis";
    constexpr std::string_view begin = "://";
    for (const std::string& word : words) {
        for (std::size_t at = word.find(begin); at != word.npos; at = word.find(begin, at + 1)) {
            const std::string url = std::string(scheme) + word.substr(at);
            const std::string shown = redis::redact(url);
            if (shown != url) hidden_texts().push_back({url.substr(scheme.size()), shown.substr(scheme.size())});
        }
    }
    // One may be a part of another.
    std::ranges::sort(hidden_texts(), std::greater(), [](const hidden_text& one) { return one.original.size(); });
}

bool user_agrees(const std::string& question) {
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) return false;
    std::cerr << question << " [y/N] ";
    std::string line;
    return std::getline(std::cin, line) && (line == "y" || line == "Y" || line == "yes");
}

int timeout_ms(instant deadline) noexcept {
    if (deadline == never) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - boot_now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

event::event() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!fd_) throw_errno("eventfd");
}

void event::raise() noexcept {
    const std::uint64_t one = 1;
    // It can only fail if it was raised 2^64 times already.
    if (::write(fd_.get(), &one, sizeof one) < 0) return;
}

void event::lower() noexcept {
    std::uint64_t times = 0;
    // It fails if it was not raised.
    if (::read(fd_.get(), &times, sizeof times) < 0) return;
}

}  // namespace holdfast::cli
