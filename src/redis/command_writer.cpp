#include "redis/command_writer.hpp"

#include <charconv>
#include <exception>

#include "base/assert.hpp"

namespace holdfast::redis {

namespace {

// The decimal digits of a number, on the stack.
class decimal {
public:
    template <class Integer>
    explicit decimal(Integer value) noexcept
        : length_(static_cast<std::size_t>(std::to_chars(digits_, digits_ + sizeof digits_, value).ptr - digits_)) {}
    std::string_view text() const noexcept { return {digits_, length_}; }

private:
    char digits_[24];
    std::size_t length_;
};

void append_header(std::string& out, char type, std::size_t count) {
    out += type;
    out += decimal{count}.text();
    out += "\r\n";
}

}  // namespace

command_writer::command_writer(std::string& out, std::size_t argument_count, part which)
    : out_(out), missing_(argument_count), exceptions_before_(std::uncaught_exceptions()) {
    HOLDFAST_ASSERT(argument_count > 0);
    if (which == part::whole) append_header(out_, '*', argument_count);
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
    append_header(out_, '$', size);
    for (const std::string_view piece : pieces) out_ += piece;
    out_ += "\r\n";
    return *this;
}

command_writer& command_writer::arg(std::int64_t value) {
    return arg(decimal{value}.text());
}

void append_command(std::string& out, std::initializer_list<std::string_view> args) {
    command_writer writer{out, args.size()};
    for (const std::string_view value : args) writer.arg(value);
}

}  // namespace holdfast::redis
