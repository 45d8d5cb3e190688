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
    at = count < 10 ? put(at, {"0123456789" + count, 1}) : put_number(at, count);
    return put(at, "\r\n");
}

// Lets `write` put at most `room` characters behind the text: one growth, however many small parts they are made of.
template <class Write>
void append(std::string& out, std::size_t room, Write write) {
    const std::size_t before = out.size();
    out.resize(before + room);
    out.resize(static_cast<std::size_t>(write(out.data() + before) - out.data()));
}

}  // namespace

command_writer::command_writer(std::string& out, std::size_t argument_count, part which)
    : out_(out), missing_(argument_count), exceptions_before_(std::uncaught_exceptions()) {
    HOLDFAST_ASSERT(argument_count > 0);
    if (which == part::rest) return;
    append(out_, header_room, [&](char* at) { return put_header(at, '*', argument_count); });
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
    append(out_, header_room + size + 2, [&](char* at) {
        at = put_header(at, '$', size);
        for (const std::string_view piece : pieces) at = put(at, piece);
        return put(at, "\r\n");
    });
    return *this;
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
