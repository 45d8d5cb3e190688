// Text for people: what comes from a server made fit to be shown, durations, columns, colours.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Control characters, which could drive a terminal, become '_'.
std::string printable(std::string_view text);
// The same, cut at a sane length.
std::string excerpt(std::string_view text);

// To the second, once there are seconds: "350ms", "12s", "3m5s", "2h", "4d3h".
std::string about(std::chrono::milliseconds duration);
template <typename Duration>
std::string about(Duration duration) {
    return about(std::chrono::floor<std::chrono::milliseconds>(duration));
}

// Nothing if the text is not entirely a whole number.
std::optional<std::int64_t> whole_number(std::string_view text) noexcept;

// An instant since the epoch as 2026-11-16T01:02:03.456Z.
std::string utc(std::chrono::microseconds since_epoch);

// "1 lock", "2 locks".
std::string counted(std::size_t count, std::string_view noun);

// How many columns of a terminal it takes; wide characters take two.
std::size_t columns_of(std::string_view text) noexcept;
// Its first so many columns, the last of them "…" if something is missing.
std::string clip(std::string_view text, std::size_t columns);

enum class emphasis { none, bold, dim, good, warning, danger, reversed };

// Colours where they are welcome: on a terminal that has them, unless NO_COLOR is set (no-color.org).
class palette {
public:
    // For what is written to that descriptor.
    static palette of(int fd);
    static palette none() { return palette(); }

    std::string paint(emphasis how, std::string_view text) const;

private:
    bool coloured_ = false;
};

struct cell {
    std::string text;
    emphasis how = emphasis::none;
};

// Rows of cells in columns as wide as their widest cell; the first row is the heading.
class table {
public:
    enum class align { left, right };

    explicit table(std::vector<align> columns) : columns_(std::move(columns)) {}
    void add(std::vector<cell> row) { rows_.push_back(std::move(row)); }
    void add_heading(const std::vector<const char*>& titles, emphasis how);
    // Where a line would be too wide these columns are left out, one after the other, before anything is cut.
    void leave_out(std::vector<std::size_t> columns) { least_important_ = std::move(columns); }
    // One line per row, without line ends. No line is wider than `most` columns.
    std::vector<std::string> lines(const palette& colours, std::size_t most = static_cast<std::size_t>(-1)) const;
    // The same with line ends.
    std::string text(const palette& colours) const;

private:
    // Of each column; 0: it is left out.
    std::vector<std::size_t> widths(std::size_t most) const;

    std::vector<align> columns_;
    std::vector<std::vector<cell>> rows_;
    std::vector<std::size_t> least_important_;
};

}  // namespace holdfast::cli
