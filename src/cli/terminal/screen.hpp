// The whole terminal as a page that is drawn again and again.
//
// While a screen lives the terminal shows its other page, keys come one by one and unseen; Ctrl-C and Ctrl-Z still
// are signals. However it ends, the terminal is as it was.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::cli {

struct screen_size {
    std::size_t rows = 24;
    std::size_t columns = 80;
};

class screen {
public:
    // Throws trouble if input or output is no terminal.
    screen();
    ~screen();
    screen(const screen&) = delete;
    screen& operator=(const screen&) = delete;

    screen_size size() const noexcept;
    // Lines that fit; what was there before is gone.
    void draw(const std::vector<std::string>& lines);
    // What was typed.
    std::string read_keys();
    bool is_gone() const noexcept { return gone_; }

    // Before and after the process stops.
    void leave() noexcept;
    void enter();

private:
    void write(std::string_view text) noexcept;

    termios before_{};
    bool entered_ = false;
    bool gone_ = false;  // hung up
};

}  // namespace holdfast::cli
