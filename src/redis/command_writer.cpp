#include "redis/command_writer.hpp"

#include <algorithm>
#include <charconv>
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

char* put(char* at, std::string_view text) noexcept {
    return std::copy(text.begin(), text.end(), at);
}

char* put_header(char* at, char type, std::size_t count) noexcept {
    *at++ = type;
    // Most arguments are short.
    if (count < 10) {
        *at++ = static_cast<char>('0' + count);
    } else {
        at = put_number(at, count);
    }
    *at++ = '\r';
    *at++ = '\n';
    return at;
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

command_writer& command_writer::arg(std::string_view value) {
    return arg(std::span(&value, 1));
}

command_writer& command_writer::arg(std::span<const std::string_view> pieces) {
    HOLDFAST_ASSERT(missing_ > 0);
    --missing_;
    std::size_t size = 0;
    for (const std::string_view piece : pieces) size += piece.size();
    if (header_room + size + 2 > gathered_.size() - used_) flush();
    char* at = put_header(gathered_.data() + used_, '$', size);
    if (header_room + size + 2 <= gathered_.size()) {
        for (const std::string_view piece : pieces) at = put(at, piece);
        at = put(at, "\r\n");
        used_ = static_cast<std::size_t>(at - gathered_.data());
    } else {
        used_ = static_cast<std::size_t>(at - gathered_.data());
        flush();
        for (const std::string_view piece : pieces) out_ += piece;
        out_ += "\r\n";
    }
    if (missing_ == 0) flush();
    return *this;
}

void command_writer::flush() {
    out_.append(gathered_.data(), used_);
    used_ = 0;
}

command_writer& command_writer::arg(std::int64_t value) {
    char digits[most_digits];
    return arg(std::string_view(digits, static_cast<std::size_t>(put_number(digits, value) - digits)));
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
