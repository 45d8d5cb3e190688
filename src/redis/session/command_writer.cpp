#include "redis/session/command_writer.hpp"

#include "base/assert.hpp"

#include <array>
#include <charconv>

namespace holdfast::redis {
namespace {

constexpr std::size_t most_digits = 20;

void append_header(std::string& out, char type, std::size_t value) {
    std::array<char, 1 + most_digits + 2> text;
    text.front() = type;
    char* end = std::to_chars(text.data() + 1, text.data() + text.size(), value).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out.append(text.data(), end);
}

}  // namespace

void argument::append_to(std::string& out) const {
    std::array<char, most_digits> digits;
    std::string_view text = text_;
    if (is_number_) text = {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number_).ptr};
    append_header(out, '$', text.size() + ending_.size() + (opening_ != 0 ? 1 : 0));
    if (opening_ != 0) out += opening_;
    out.append(text).append(ending_).append("\r\n");
}

void append_command(std::string& out, std::span<const argument> all) {
    HOLDFAST_ASSERT(!all.empty());
    append_header(out, '*', all.size());
    append_arguments(out, all);
}

void append_command(std::string& out, std::initializer_list<argument> all) {
    append_command(out, std::span(all.begin(), all.size()));
}

void append_arguments(std::string& out, std::span<const argument> rest) {
    for (const argument& each : rest) each.append_to(out);
}

void append_head(std::string& out, std::size_t argument_count, std::initializer_list<argument> first) {
    HOLDFAST_ASSERT(first.size() <= argument_count);
    append_header(out, '*', argument_count);
    append_arguments(out, std::span(first.begin(), first.size()));
}

std::string encoded_command(std::initializer_list<argument> all) {
    std::string out;
    append_command(out, all);
    return out;
}

}  // namespace holdfast::redis
