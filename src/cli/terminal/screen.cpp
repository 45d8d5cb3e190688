#include "cli/terminal/screen.hpp"

#include "cli/terminal/system.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace holdfast::cli {
namespace {

// xterm's, which every terminal of today knows: other page on and off, cursor off and on.
constexpr std::string_view other_page = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view own_page = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view home = "\x1b[H";
constexpr std::string_view rest_of_line = "\x1b[K";
constexpr std::string_view rest_of_page = "\x1b[J";

}  // namespace

screen::screen() {
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
        throw trouble("top needs a terminal; holdfast ls lists once, and top --json writes lines for programs");
    }
    enter();
}

screen::~screen() {
    leave();
}

void screen::enter() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) throw_errno("terminal");
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VMIN] = 0;
    keys.c_cc[VTIME] = 0;
    if (::tcsetattr(STDIN_FILENO, TCSADRAIN, &keys) != 0) throw_errno("terminal");
    entered_ = true;
    write(other_page);
}

void screen::leave() noexcept {
    if (!entered_) return;
    entered_ = false;
    write(own_page);
    // Fails if the terminal has hung up; then there is nothing to put right.
    if (::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_) != 0) return;
}

screen_size screen::size() const noexcept {
    winsize told{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &told) != 0 || told.ws_row == 0 || told.ws_col == 0) return {};
    return {told.ws_row, told.ws_col};
}

void screen::draw(const std::vector<std::string>& lines) {
    std::string page(home);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (i > 0) page += "\r\n";
        page += lines[i];
        page += rest_of_line;
    }
    page += rest_of_page;
    write(page);
}

std::string screen::read_keys() {
    std::array<char, 256> buffer{};
    const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    // It was told that there is something to read: nothing is the end.
    if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) gone_ = true;
    return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
}

void screen::write(std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t size = ::write(STDOUT_FILENO, text.data(), text.size());
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) {
            gone_ = true;
            return;
        }
        text.remove_prefix(static_cast<std::size_t>(size));
    }
}

}  // namespace holdfast::cli
