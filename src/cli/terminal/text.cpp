#include "cli/terminal/text.hpp"

#include "cli/terminal/system.hpp"
#include "redis/url/duration.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t gap = 2;  // between two columns of a table

// One character of UTF-8, or one byte that is none.
struct character {
    std::string_view bytes;
    char32_t code;
};

character first_of(std::string_view text) noexcept {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    const std::size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (length == 1 || length > text.size()) return {text.substr(0, 1), lead};
    char32_t code = lead & (0xffU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0U) != 0x80) return {text.substr(0, 1), lead};
        code = code << 6U | (byte(i) & 0x3fU);
    }
    return {text.substr(0, length), code};
}

// The blocks that terminals draw two columns wide: Hangul, CJK, full-width forms, pictographs.
std::size_t width_of(char32_t code) noexcept {
    struct range {
        char32_t first, last;
    };
    constexpr std::array wide{range{0x1100, 0x115f},  range{0x2e80, 0xa4cf},   range{0xac00, 0xd7a3},
                              range{0xf900, 0xfaff},  range{0xfe30, 0xfe6f},   range{0xff00, 0xff60},
                              range{0xffe0, 0xffe6},  range{0x1f300, 0x1f64f}, range{0x1f900, 0x1f9ff},
                              range{0x20000, 0x3fffd}};
    const bool combining = code >= 0x300 && code <= 0x36f;
    if (combining) return 0;
    return std::ranges::any_of(wide, [code](range r) { return r.first <= code && code <= r.last; }) ? 2 : 1;
}

std::string_view code_of(emphasis how) {
    constexpr std::array<std::string_view, 7> codes{"", "1", "2", "32", "33", "1;31", "7"};
    return codes[static_cast<std::size_t>(how)];
}

// "3m5s", and "3m" without a rest.
std::string in_two_units(std::int64_t count, std::int64_t size, std::string_view units) {
    const std::string large = fmt::format("{}{}", count / size, units[0]);
    return count % size == 0 ? large : fmt::format("{}{}{}", large, count % size, units[1]);
}

}  // namespace

std::string printable(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const character next = first_of(text);
        const bool control = next.code < 0x20 || (next.code >= 0x7f && next.code < 0xa0);
        // A byte above that alone is no character, and C1 controls hide among them.
        const bool broken = next.bytes.size() == 1 && next.code >= 0x80;
        result += control || broken ? std::string_view("_") : next.bytes;
        text.remove_prefix(next.bytes.size());
    }
    return result;
}

std::string excerpt(std::string_view text) {
    constexpr std::size_t enough = 80;
    const std::string whole = printable(text);
    return columns_of(whole) <= enough ? whole : clip(whole, enough);
}

std::string about(milliseconds duration) {
    using namespace std::chrono;
    if (duration < seconds(2)) return redis::format_duration(duration);
    const auto whole = floor<seconds>(duration).count();
    if (whole < 60) return fmt::format("{}s", whole);
    if (whole < 3600) return in_two_units(whole, 60, "ms");
    if (whole < 24 * 3600) return in_two_units(whole / 60, 60, "hm");
    return in_two_units(whole / 3600, 24, "dh");
}

std::optional<std::int64_t> whole_number(std::string_view text) noexcept {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string utc(std::chrono::microseconds since_epoch) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
    const auto ms = std::chrono::floor<milliseconds>(since_epoch - seconds).count();
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(seconds.count())), ms);
}

std::string counted(std::size_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::size_t columns_of(std::string_view text) noexcept {
    std::size_t columns = 0;
    while (!text.empty()) {
        const character next = first_of(text);
        columns += width_of(next.code);
        text.remove_prefix(next.bytes.size());
    }
    return columns;
}

std::string clip(std::string_view text, std::size_t columns) {
    if (columns_of(text) <= columns) return std::string(text);
    if (columns == 0) return {};
    std::string result;
    std::size_t used = 1;  // by the mark
    while (!text.empty()) {
        const character next = first_of(text);
        used += width_of(next.code);
        if (used > columns) break;
        result += next.bytes;
        text.remove_prefix(next.bytes.size());
    }
    return result + "…";
}

palette palette::of(int fd) {
    palette result;
    const std::string term = environment("TERM");
    result.coloured_ = ::isatty(fd) == 1 && environment("NO_COLOR").empty() && !term.empty() && term != "dumb";
    return result;
}

std::string palette::paint(emphasis how, std::string_view text) const {
    if (!coloured_ || how == emphasis::none || text.empty()) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", code_of(how), text);
}

void table::add_heading(const std::vector<const char*>& titles, emphasis how) {
    std::vector<cell>& row = rows_.emplace_back();
    for (const char* title : titles) row.push_back({title, how});
}

std::vector<std::size_t> table::widths(std::size_t most) const {
    std::vector<std::size_t> result(columns_.size(), 0);
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i) result[i] = std::max(result[i], columns_of(row[i].text));
    }
    const auto whole = [&result] {
        std::size_t sum = 0;
        for (const std::size_t width : result) sum += width == 0 ? 0 : width + gap;
        return sum - std::min(sum, gap);
    };
    for (const std::size_t column : least_important_) {
        if (whole() > most) result[column] = 0;
    }
    return result;
}

std::vector<std::string> table::lines(const palette& colours, std::size_t most) const {
    const std::vector<std::size_t> widths = this->widths(most);
    std::vector<std::string> result;
    for (const auto& row : rows_) {
        std::string line;
        std::string blanks;  // written only if something follows
        std::size_t written = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (widths[i] == 0) continue;
            const std::size_t padding = widths[i] - columns_of(row[i].text);
            if (columns_[i] == align::right) blanks.append(padding, ' ');
            const std::string text = clip(row[i].text, most - std::min(most, written + blanks.size()));
            if (!text.empty()) {
                written += blanks.size() + columns_of(text);
                line += std::exchange(blanks, {}) + colours.paint(row[i].how, text);
            }
            blanks.append(gap + (columns_[i] == align::left ? padding : 0), ' ');
        }
        result.push_back(std::move(line));
    }
    return result;
}

std::string table::text(const palette& colours) const {
    std::string result;
    for (const std::string& line : lines(colours)) result += line + "\n";
    return result;
}

}  // namespace holdfast::cli
