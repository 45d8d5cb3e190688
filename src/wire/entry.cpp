#include "wire/entry.hpp"

#include <array>

namespace holdfast::wire {
namespace {

constexpr double in_front_by = static_cast<double>(end_of_tokens);

}  // namespace

std::string_view cut_word(std::string_view& text) noexcept {
    const auto end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return word;
}

std::map<std::string_view, std::string_view> pairs_of(const redis::reply_view& list) {
    std::map<std::string_view, std::string_view> pairs;
    for (auto at = list.begin(); at != list.end();) {
        const std::string_view name = (*at++).text();
        if (at != list.end()) pairs[name] = (*at++).text();
    }
    return pairs;
}

std::string_view word_of(preference chosen) noexcept {
    constexpr std::array<std::string_view, 3> words{"arrival", "readers", "writers"};
    return words[static_cast<std::size_t>(chosen)];
}

std::string_view word_of(wish wants) noexcept {
    constexpr std::array<std::string_view, 3> words{"w", "r", "u"};
    return words[static_cast<std::size_t>(wants)];
}

std::string_view word_of(shape held) noexcept {
    constexpr std::array<std::string_view, 4> words{"", "r", "w", "b"};
    return words[static_cast<std::size_t>(held)];
}

std::optional<shape> shape_of(std::string_view word) noexcept {
    for (const shape one : {shape::reading, shape::writing, shape::both}) {
        if (word == word_of(one)) return one;
    }
    return std::nullopt;
}

std::optional<std::uint32_t> permits_in(std::string_view text) noexcept {
    const auto number = number_in<std::int64_t>(text);
    if (!number || *number < 1 || *number > most_permits) return std::nullopt;
    return static_cast<std::uint32_t>(*number);
}

std::optional<std::uint64_t> token_in(std::string_view text) noexcept {
    const auto number = number_in<std::int64_t>(text);
    if (!number || *number < 1 || *number >= end_of_tokens) return std::nullopt;
    return static_cast<std::uint64_t>(*number);
}

bool waiter_entry::is_silent_at(std::chrono::microseconds now) const noexcept {
    return poll_interval && last_poll && now - *last_poll > 2 * *poll_interval;
}

waiter_entry read_entry(std::string_view text) noexcept {
    cut_word(text);  // lease
    const auto interval_ms = number_in<std::int64_t>(cut_word(text));
    const auto last_poll_us = number_in<std::int64_t>(cut_word(text));
    cut_word(text);  // token floor
    const std::string_view wanted = cut_word(text);
    waiter_entry entry;
    if (text.empty()) return entry;  // without a channel it is no entry
    for (const wish one : {wish::write, wish::read, wish::upgrade}) {
        if (wanted == word_of(one)) entry.wants = one;
    }
    if (!entry.wants) entry.permits = permits_in(wanted);
    if (interval_ms) entry.poll_interval = milliseconds(*interval_ms);
    if (last_poll_us) entry.last_poll = std::chrono::microseconds(*last_poll_us);
    return entry;
}

queue_score read_score(std::string_view text) noexcept {
    const double score = number_in<double>(text).value_or(0);
    const double ticket = score < 0 ? score + in_front_by : score;
    return {std::chrono::microseconds(static_cast<std::int64_t>(ticket)), score < 0};
}

std::optional<std::uint64_t> token_of_grant(std::string_view text) noexcept {
    cut_word(text);
    return token_in(cut_word(text));
}

}  // namespace holdfast::wire
