#include "cli/terminal/system.hpp"

#include "base/boot_clock.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <system_error>

namespace holdfast::cli {

void throw_errno(const std::string& what) {
    throw std::system_error(errno, std::system_category(), what);
}

pipe_ends make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe");
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

void tell(std::string_view message) noexcept {
    try {
        // One write, so that the lines of processes that compete for a lock do not mix.
        const std::string line = "holdfast: " + std::string(message) + "\n";
        if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
    } catch (const std::bad_alloc&) {
        return;
    }
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

}  // namespace holdfast::cli
