#include "redis/session/command_writer.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace holdfast::redis {
namespace {

constexpr std::size_t most_digits = 20;
constexpr std::size_t most_header_bytes = 1 + most_digits + 2;

char* put(char* at, std::string_view text) noexcept {
    return std::copy(text.begin(), text.end(), at);
}

char* put_header(char* at, char type, std::size_t value) noexcept {
    *at++ = type;
    return put(std::to_chars(at, at + most_digits, value).ptr, "\r\n");
}

void append_header(std::string& out, char type, std::size_t value) {
    std::array<char, most_header_bytes> text;
    out.append(text.data(), put_header(text.data(), type, value));
}

}  // namespace

std::size_t argument::most_bytes() const noexcept {
    return most_header_bytes + 1 + (is_number_ ? most_digits : text_.size()) + ending_.size() + 2;
}

char* argument::write_to(char* at) const noexcept {
    std::array<char, most_digits> digits;
    std::string_view text = text_;
    if (is_number_) text = {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number_).ptr};
    at = put_header(at, '$', text.size() + ending_.size() + (opening_ != 0 ? 1 : 0));
    if (opening_ != 0) *at++ = opening_;
    return put(put(put(at, text), ending_), "\r\n");
}

void append_command(std::string& out, std::span<const argument> all) {
    HOLDFAST_ASSERT(!all.empty());
    append_header(out, '*', all.size());
    append_arguments(out, all);
}

void append_command(std::string& out, std::initializer_list<argument> all) {
    append_command(out, std::span(all.begin(), all.size()));
}

// `out` grows once for all arguments.
void append_arguments(std::string& out, std::span<const argument> rest) {
    const std::size_t before = out.size();
    std::size_t most = 0;
    for (const argument& each : rest) most += each.most_bytes();
    out.resize(before + most);
    char* at = out.data() + before;
    for (const argument& each : rest) at = each.write_to(at);
    out.resize(static_cast<std::size_t>(at - out.data()));
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
