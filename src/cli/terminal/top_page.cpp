#include "cli/terminal/top_page.hpp"

#include "cli/inspect/output/lock_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr std::string_view escape = "\x1b";

struct order_key {
    char key;
    top_order order;
    const char* title;
};
constexpr std::array order_keys{order_key{'w', top_order::waiters, "waiters"},
                                order_key{'o', top_order::wait, "longest wait"},
                                order_key{'h', top_order::held, "time held"},
                                order_key{'l', top_order::left, "lease left"}, order_key{'n', top_order::name, "name"}};

const char* title_of(top_order order) {
    return std::ranges::find(order_keys, order, &order_key::order)->title;
}

// The next key of what was typed: an escape sequence ("\x1b[A"), or one character.
std::string_view next_key(std::string_view keys) {
    if (!keys.starts_with("\x1b[") && !keys.starts_with("\x1bO")) return keys.substr(0, 1);
    std::size_t end = 2;
    while (end < keys.size() && (keys[end] < '@' || keys[end] > '~')) ++end;
    return keys.substr(0, end + 1);
}

microseconds held_of(const lock_state& lock) {
    return lock.is_free() ? microseconds(0) : lock.holders.front().held.value_or(microseconds(0));
}

milliseconds left_of(const lock_state& lock) {
    return lock.is_free() ? milliseconds::max() : lock.holders.front().left.value_or(milliseconds::max());
}

bool contains(std::string_view text, std::string_view part) {
    const auto same = [](char a, char b) {
        const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
        return lower(a) == lower(b);
    };
    return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end() || part.empty();
}

}  // namespace

void top_page::show(std::vector<lock_state> locks) {
    locks_ = std::move(locks);
    trouble_.clear();
}

bool top_page::press(std::string_view keys) {
    while (!keys.empty()) {
        const std::string_view key = next_key(keys);
        keys.remove_prefix(key.size());
        if (editing_) {
            edit_filter(key);
        } else if (!press_one(key)) {
            return false;
        }
    }
    return true;
}

bool top_page::press_one(std::string_view key) {
    const auto page = static_cast<std::ptrdiff_t>(page_rows_);
    if (key == "q" || key == "Q") return false;
    if (key == "r") reversed_ = !reversed_;
    if (key == "a") with_free_ = !with_free_;
    if (key == "/") editing_ = true;
    if (key == escape) filter_.clear();
    if (key == "s") choose(order_keys[(static_cast<std::size_t>(order_) + 1) % order_keys.size()].order);
    for (const order_key& one : order_keys) {
        if (key.size() == 1 && key[0] == one.key) choose(one.order);
    }
    if (key == "\x1b[A" || key == "\x1bOA" || key == "k") scroll(-1);
    if (key == "\x1b[B" || key == "\x1bOB" || key == "j") scroll(1);
    if (key == "\x1b[5~") scroll(-page);
    if (key == "\x1b[6~" || key == " ") scroll(page);
    if (key == "\x1b[H" || key == "g") first_ = 0;
    return true;
}

void top_page::edit_filter(std::string_view key) {
    constexpr char backspace = 0x7f;
    first_ = 0;
    if (key == "\r" || key == "\n") {
        editing_ = false;
    } else if (key == escape) {
        editing_ = false;
        filter_.clear();
    } else if (key[0] == backspace || key == "\b") {
        // A whole character of UTF-8.
        while (!filter_.empty() && (static_cast<unsigned char>(filter_.back()) & 0xc0U) == 0x80) filter_.pop_back();
        if (!filter_.empty()) filter_.pop_back();
    } else if (key.size() == 1 && static_cast<unsigned char>(key[0]) >= 0x20) {
        filter_ += key;
    }
}

void top_page::choose(top_order order) {
    order_ = order;
    reversed_ = false;
    first_ = 0;
}

void top_page::scroll(std::ptrdiff_t rows) {
    first_ = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(first_) + rows));
}

bool top_page::comes_first(const lock_state& a, const lock_state& b) const {
    const lock_state& one = reversed_ ? b : a;
    const lock_state& other = reversed_ ? a : b;
    if (order_ == top_order::waiters) return one.waiters.size() > other.waiters.size();
    if (order_ == top_order::wait) return one.oldest_wait() > other.oldest_wait();
    if (order_ == top_order::held) return held_of(one) > held_of(other);
    if (order_ == top_order::left) return left_of(one) < left_of(other);
    return one.where.name.text() < other.where.name.text();
}

// They come sorted by name, and among equals stay so.
std::vector<lock_state> top_page::chosen() const {
    std::vector<lock_state> rows = locks_;
    std::erase_if(rows, [this](const lock_state& lock) {
        return (!with_free_ && lock.is_idle()) || !contains(lock.where.name.text(), filter_);
    });
    std::ranges::stable_sort(rows, [this](const lock_state& a, const lock_state& b) { return comes_first(a, b); });
    return rows;
}

std::string top_page::summary(const std::vector<lock_state>& rows) const {
    std::size_t held = 0;
    std::size_t waiters = 0;
    for (const lock_state& lock : rows) {
        if (!lock.is_free()) ++held;
        waiters += lock.waiters.size();
    }
    return fmt::format("{}  {} held, {}, by {}{}{}", server_, counted(held, "lock"), counted(waiters, "waiter"),
                       title_of(order_), reversed_ ? " (reversed)" : "",
                       filter_.empty() ? "" : fmt::format(", only *{}*", printable(filter_)));
}

std::string top_page::hints() const {
    if (editing_) return fmt::format("filter: {}_   Enter keeps it, Esc drops it", printable(filter_));
    return "q quit  / filter  a all  ↑↓ scroll  r reverse  s sort (w waiters, o longest wait, h held, l left, n name)";
}

std::vector<std::string> top_page::lines(screen_size size, const palette& colours) {
    constexpr std::size_t around = 4;  // summary, trouble or nothing, heading, hints
    const std::vector<lock_state> rows = chosen();
    page_rows_ = size.rows > around ? size.rows - around : 1;
    first_ = rows.size() <= page_rows_ ? 0 : std::min(first_, rows.size() - page_rows_);
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(page_rows_, rows.size() - first_));
    std::vector<std::string> result{colours.paint(emphasis::bold, clip(summary(rows), size.columns)),
                                    colours.paint(emphasis::danger, clip(printable(trouble_), size.columns))};
    for (std::string& line : tabulate({begin, end}).lines(colours, size.columns)) result.push_back(std::move(line));
    result.resize(std::max<std::size_t>(size.rows, 1) - 1);
    result.push_back(colours.paint(editing_ ? emphasis::reversed : emphasis::dim, clip(hints(), size.columns)));
    return result;
}

}  // namespace holdfast::cli
