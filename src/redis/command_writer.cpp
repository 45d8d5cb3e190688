#include "redis/command_writer.hpp"

#include <charconv>
#include <cstring>
#include <exception>

#include "base/assert.hpp"

namespace holdfast::redis {

namespace {

constexpr std::size_t most_digits = 20;
constexpr std::size_t header_room = 1 + most_digits + 2;

template <class Integer>
char* put_number(char* at, Integer value) noexcept {
    return std::to_chars(at, at + most_digits, value).ptr;
}

// Both ends at once, which overlap where there is less: both are read before anything is written.
template <class Word>
void put_ends(char* at, const char* from, std::size_t size) noexcept {
    Word first;
    Word last;
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + size - sizeof last, sizeof last);
    std::memcpy(at, &first, sizeof first);
    std::memcpy(at + size - sizeof last, &last, sizeof last);
}

// Most pieces have a few characters, which are copied before a call of memcpy has found out how many there are.
char* put(char* at, std::string_view text) noexcept {
    const char* const from = text.data();
    const std::size_t size = text.size();
    if (size > 16) {
        std::memcpy(at, from, size);
    } else if (size >= 8) {
        put_ends<std::uint64_t>(at, from, size);
    } else if (size >= 4) {
        put_ends<std::uint32_t>(at, from, size);
    } else {
        for (std::size_t i = 0; i < size; ++i) at[i] = from[i];
    }
    return at + size;
}

char digit(std::uint64_t value) noexcept {
    return static_cast<char>('0' + value);
}

// "00" to "99".
constexpr auto two_digits = [] {
    std::array<char, 200> all{};
    for (std::size_t i = 0; i < 100; ++i) {
        all[2 * i] = static_cast<char>('0' + i / 10);
        all[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return all;
}();

// So that its last digit stands before `end`. Returns where it begins. By two digits a division: tokens have sixteen.
inline char* put_before(char* end, std::uint64_t value) noexcept {
    for (; value >= 100; value /= 100) std::memcpy(end -= 2, &two_digits[value % 100 * 2], 2);
    if (value < 10) {
        *--end = digit(value);
    } else {
        std::memcpy(end -= 2, &two_digits[value * 2], 2);
    }
    return end;
}

char* put_end_of_line(char* at) noexcept {
    return put(at, "\r\n");
}

char* put_long_header(char* at, std::size_t count) noexcept {
    return put_end_of_line(put_number(at, count));
}

// Most arguments are short.
inline char* put_header(char* at, char type, std::size_t count) noexcept {
    *at++ = type;
    if (count >= 100) return put_long_header(at, count);
    if (count >= 10) *at++ = digit(count / 10);
    *at++ = digit(count % 10);
    return put_end_of_line(at);
}

}  // namespace

// Nothing of `gathered_` is read before it is written.
command_writer::command_writer(std::string& out, std::size_t argument_count, part which)
    : out_(out), missing_(argument_count), exceptions_before_(std::uncaught_exceptions()) {
    HOLDFAST_ASSERT(argument_count > 0);
    if (which == part::rest) return;
    used_ = static_cast<std::size_t>(put_header(gathered_.data(), '*', argument_count) - gathered_.data());
}

command_writer::~command_writer() {
    HOLDFAST_ASSERT(missing_ == 0 || std::uncaught_exceptions() > exceptions_before_);
}

// With room for so many characters, which may be more than is gathered.
inline char* command_writer::next_argument(std::size_t size) {
    HOLDFAST_ASSERT(missing_ > 0);
    --missing_;
    if (header_room + size + 2 > gathered_.size() - used_) flush();
    return gathered_.data() + used_;
}

inline char* command_writer::begin_argument(std::size_t size) {
    return put_header(next_argument(size), '$', size);
}

inline void command_writer::end_argument(char* at) {
    at = put_end_of_line(at);
    used_ = static_cast<std::size_t>(at - gathered_.data());
    if (missing_ == 0) flush();
}

command_writer& command_writer::arg(std::string_view value) {
    char* const at = begin_argument(value.size());
    if (!fits(value.size())) return add_long(at, std::span(&value, 1));
    end_argument(put(at, value));
    return *this;
}

command_writer& command_writer::arg(std::span<const std::string_view> pieces) {
    std::size_t size = 0;
    for (const std::string_view piece : pieces) size += piece.size();
    char* at = begin_argument(size);
    if (!fits(size)) return add_long(at, pieces);
    for (const std::string_view piece : pieces) at = put(at, piece);
    end_argument(at);
    return *this;
}

bool command_writer::fits(std::size_t size) const noexcept {
    return header_room + size + 2 <= gathered_.size();
}

// More than is gathered.
command_writer& command_writer::add_long(char* behind_header, std::span<const std::string_view> pieces) {
    used_ = static_cast<std::size_t>(behind_header - gathered_.data());
    flush();
    for (const std::string_view piece : pieces) out_ += piece;
    out_ += "\r\n";
    return *this;
}

void command_writer::flush() {
    out_.append(gathered_.data(), used_);
    used_ = 0;
}

// Half of the numbers of a lock's cycle have one digit.
command_writer& command_writer::arg(std::int64_t value) {
    if (value >= 0 && value < 10) {
        char* const at = next_argument(1);
        std::memcpy(at, "$1\r\n", 4);
        at[4] = digit(static_cast<std::uint64_t>(value));
        end_argument(at + 5);
        return *this;
    }
    char digits[2 * most_digits];
    std::memset(digits + most_digits, 0, most_digits);  // copied below, and then written over
    char* const end = digits + most_digits;
    char* begin =
        put_before(end, value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
    if (value < 0) *--begin = '-';
    const auto size = static_cast<std::size_t>(end - begin);
    char* const at = begin_argument(size);
    // As many as there may be, which is a few moves; the room of a longer header is left, and is written over.
    static_assert(header_room + sizeof("\r\n") >= sizeof("$20\r\n") + most_digits);
    std::memcpy(at, begin, most_digits);
    end_argument(at + size);
    return *this;
}

// Twice for every cycle of a lock, and then small: put together apart, so that `out` grows once.
void append_head(std::string& out, std::size_t argument_count, std::initializer_list<std::string_view> first) {
    std::array<char, 128> gathered;
    char* at = put_header(gathered.data(), '*', argument_count);
    for (const std::string_view value : first) {
        const auto used = static_cast<std::size_t>(at - gathered.data());
        if (used + header_room + value.size() + 2 <= gathered.size()) {
            at = put_end_of_line(put(put_header(at, '$', value.size()), value));
            continue;
        }
        out.append(gathered.data(), used);
        command_writer(out, 1, command_writer::part::rest).arg(value);
        at = gathered.data();
    }
    out.append(gathered.data(), static_cast<std::size_t>(at - gathered.data()));
}

void append_command(std::string& out, std::initializer_list<std::string_view> args) {
    command_writer writer{out, args.size()};
    for (const std::string_view value : args) writer.arg(value);
}

std::string encoded_command(std::initializer_list<std::string_view> args) {
    std::string out;
    append_command(out, args);
    return out;
}

}  // namespace holdfast::redis
