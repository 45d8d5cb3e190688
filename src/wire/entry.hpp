// The texts that the scripts store in a lock's keys, and the words in them. See common/entry.lua and
// rw/common/grant_text.lua.
#pragma once

#include "redis/resp/characters.hpp"
#include "wire/requests.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace holdfast::wire {

using redis::number_in;

// Lua's numbers are doubles: from 2^53 on they have gaps, so no script grants such a token.
inline constexpr std::int64_t end_of_tokens = std::int64_t{1} << 53;
// Of one semaphore.
inline constexpr std::int64_t most_permits = 1'000'000'000;

// Cuts the first word off `text`, with the space behind it.
std::string_view cut_word(std::string_view& text) noexcept;
// A list of names and values, one after the other.
std::map<std::string_view, std::string_view> pairs_of(const redis::reply_view& list);

std::string_view word_of(preference chosen) noexcept;
std::string_view word_of(wish wants) noexcept;
std::string_view word_of(shape held) noexcept;  // empty: nothing
// Nothing for an unknown word.
std::optional<shape> shape_of(std::string_view word) noexcept;
// A number of permits, or a limit.
std::optional<std::uint32_t> permits_in(std::string_view text) noexcept;
// Nothing for 0 and for what no script grants.
std::optional<std::uint64_t> token_in(std::string_view text) noexcept;

// A waiter's entry: "<lease ms> <poll interval ms> <last poll us> <token floor> <wish> <channel>". Of a semaphore the
// wish is a number of permits. A word that makes no sense is left at its default.
struct waiter_entry {
    std::optional<wish> wants;
    std::optional<std::uint32_t> permits;  // instead of a wish: of a semaphore
    std::optional<milliseconds> poll_interval;
    std::optional<std::chrono::microseconds> last_poll;  // by the server's clock

    // It missed two polls. A hand-over passes it over.
    bool is_silent_at(std::chrono::microseconds now) const noexcept;
};
waiter_entry read_entry(std::string_view text) noexcept;

// When a waiter took its ticket, by the server's clock. An upgrade is in front of the queue: its score is its ticket
// less 2^53.
struct queue_score {
    std::chrono::microseconds ticket{0};
    bool is_upgrade = false;
};
queue_score read_score(std::string_view text) noexcept;

// The token of a grant: "<shape> <token>", or "<shape> <token> lost"; of a semaphore "<permits> <token>".
std::optional<std::uint64_t> token_of_grant(std::string_view text) noexcept;

}  // namespace holdfast::wire
