// What top shows, and what keys do to it. Knows no terminal: keys in, lines out.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/terminal/screen.hpp"
#include "cli/terminal/text.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

enum class top_order { waiters, wait, held, left, name };

class top_page {
public:
    explicit top_page(std::string server) : server_(std::move(server)) {}

    void show(std::vector<lock_state> locks);
    // Instead of news: why there are none.
    void show_trouble(std::string why) { trouble_ = std::move(why); }

    // False: the user wants to go.
    bool press(std::string_view keys);

    // As many lines as the screen has, or fewer.
    std::vector<std::string> lines(screen_size size, const palette& colours);

private:
    bool press_one(std::string_view key);
    void edit_filter(std::string_view key);
    void choose(top_order order);
    void scroll(std::ptrdiff_t rows);
    std::vector<lock_state> chosen() const;
    bool comes_first(const lock_state& a, const lock_state& b) const;
    std::string summary(const std::vector<lock_state>& rows) const;
    std::string hints() const;

    std::string server_;
    std::string trouble_;
    std::string filter_;
    std::vector<lock_state> locks_;
    top_order order_ = top_order::waiters;
    bool reversed_ = false;
    bool with_free_ = false;
    bool editing_ = false;
    std::size_t first_ = 0;      // row at the top
    std::size_t page_rows_ = 1;  // rows that fit, when last drawn
};

}  // namespace holdfast::cli
