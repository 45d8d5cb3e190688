#include "engine/hold_id.hpp"

namespace holdfast::engine {
namespace {

constexpr std::string_view mark = "hf_";
constexpr std::size_t client_digits = 16;
constexpr std::size_t random_digits = 22;
constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

// Six random bits a character.
void append_random(std::string& out, random_source& source, std::size_t count) {
    std::uint64_t bits = 0;
    unsigned left = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (left < 6) {
            bits = source.next();
            left = 64;
        }
        out += digits[bits & 63U];
        bits >>= 6U;
        left -= 6;
    }
}

bool all_digits(std::string_view text) noexcept {
    return text.find_first_not_of(digits) == std::string_view::npos;
}

}  // namespace

client_id::client_id(random_source& source) : text_(mark) {
    append_random(text_, source, client_digits);
}

hold_id::hold_id(const client_id& client, std::uint64_t counter, random_source& source) : text_(client.text()) {
    text_ += '.';
    text_ += std::to_string(counter);
    text_ += '.';
    append_random(text_, source, random_digits);
}

std::string_view client_of(std::string_view id) noexcept {
    constexpr std::size_t length = mark.size() + client_digits;
    if (id.size() < length + 2 + random_digits || !id.starts_with(mark) || id[length] != '.') return {};
    const auto second_dot = id.find('.', length + 1);
    if (second_dot == std::string_view::npos || id.size() - second_dot - 1 != random_digits) return {};
    const std::string_view counter = id.substr(length + 1, second_dot - length - 1);
    if (counter.find_first_not_of("0123456789") != std::string_view::npos) return {};
    if (!all_digits(id.substr(mark.size(), client_digits)) || !all_digits(id.substr(second_dot + 1))) return {};
    return id.substr(0, length);
}

bool is_ours(std::string_view id) noexcept {
    return !client_of(id).empty();
}

}  // namespace holdfast::engine
