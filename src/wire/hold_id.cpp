#include "wire/hold_id.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>

namespace holdfast::wire {
namespace {

constexpr std::string_view beginning = "hf_";
constexpr std::size_t client_digits = 16;
constexpr std::size_t random_digits = 22;
constexpr std::size_t most_zeros = 2;
constexpr std::size_t most_counter_digits = 20;
constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

// Six random bits for a character, ten characters for a draw.
void fill_random(std::span<char> out, random_source& source) {
    while (!out.empty()) {
        std::uint64_t bits = source.next();
        const std::span now = out.first(std::min<std::size_t>(out.size(), 10));
        for (char& one : now) {
            one = digits[bits & 63U];
            bits >>= 6U;
        }
        out = out.subspan(now.size());
    }
}

constexpr auto is_digit = [] {
    std::array<bool, 256> all{};
    for (const char one : digits) all[static_cast<unsigned char>(one)] = true;
    return all;
}();

bool all_digits(std::string_view text) noexcept {
    return std::all_of(text.begin(), text.end(), [](char one) { return is_digit[static_cast<unsigned char>(one)]; });
}

}  // namespace

client_id::client_id(random_source& source) : text_(beginning) {
    text_.resize(beginning.size() + client_digits);
    fill_random(std::span(text_).subspan(beginning.size()), source);
}

hold_id::hold_id(std::uint64_t counter, random_source& source) : counter_(counter) {
    fill_random(random_, source);
}

// All parts but the counter have a fixed length, so the compiler copies them inline.
hold_id::spelled hold_id::spell(const client_id& client, mark marked) const noexcept {
    constexpr std::size_t client_length = beginning.size() + client_digits;
    HOLDFAST_ASSERT(client.text().size() == client_length);
    HOLDFAST_ASSERT(marked == mark::none || counter_ != 0);
    spelled out;
    std::memcpy(out.text_, client.text().data(), client_length);
    char* at = out.text_ + client_length;
    *at++ = '.';
    at = std::fill_n(at, static_cast<std::size_t>(marked), '0');
    at = std::to_chars(at, at + most_counter_digits, counter_).ptr;
    *at++ = '.';
    static_assert(client_length + 1 + most_zeros + most_counter_digits + 1 + random_digits <= sizeof out.text_);
    std::memcpy(at, random_.data(), random_digits);
    out.size_ = static_cast<std::size_t>(at - out.text_) + random_digits;
    return out;
}

std::string_view client_of(std::string_view id) noexcept {
    constexpr std::size_t length = beginning.size() + client_digits;
    if (id.size() < length + 2 + random_digits || !id.starts_with(beginning) || id[length] != '.') return {};
    const auto second_dot = id.find('.', length + 1);
    if (second_dot == std::string_view::npos || id.size() - second_dot - 1 != random_digits) return {};
    const std::string_view counter = id.substr(length + 1, second_dot - length - 1);
    if (counter.find_first_not_of("0123456789") != std::string_view::npos) return {};
    if (!all_digits(id.substr(beginning.size(), client_digits)) || !all_digits(id.substr(second_dot + 1))) return {};
    return id.substr(0, length);
}

std::optional<std::uint64_t> counter_of(std::string_view id) noexcept {
    const std::string_view client = client_of(id);
    if (client.empty()) return std::nullopt;
    std::uint64_t counter = 0;
    const auto [end, bad] = std::from_chars(id.data() + client.size() + 1, id.data() + id.size(), counter);
    return bad == std::errc() && *end == '.' ? std::optional(counter) : std::nullopt;
}

bool is_noted(std::string_view id) noexcept {
    constexpr std::size_t second_dot = beginning.size() + client_digits + 1 + 19;
    return id.size() > second_dot && id[second_dot] == '.' && is_ours(id);
}

bool is_ours(std::string_view id) noexcept {
    return !client_of(id).empty();
}

mark mark_of(std::string_view id) noexcept {
    const std::string_view client = client_of(id);
    if (client.empty()) return mark::none;
    const std::string_view counter = id.substr(client.size() + 1);
    const std::size_t zeros = counter.find_first_not_of('0');
    if (counter[zeros] == '.') return mark::none;  // the counter is 0
    return static_cast<mark>(std::min(zeros, most_zeros));
}

}  // namespace holdfast::wire
