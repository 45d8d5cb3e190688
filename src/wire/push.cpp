#include "wire/push.hpp"

#include "wire/entry.hpp"

#include <algorithm>
#include <array>

namespace holdfast::wire {
namespace {

constexpr std::array<std::string_view, 7> verbs{"grant",       "poll",   "revoked", "recall",
                                                "grant_block", "wanted", "changed"};

// How many numbers follow an id, by push_kind.
constexpr std::array<std::size_t, 7> numbers_of{1, 0, 1, 1, 3, 0, 0};

bool names_many(push_kind kind) noexcept {
    return kind == push_kind::grant || kind == push_kind::grant_block || kind == push_kind::wanted ||
           kind == push_kind::changed;
}

}  // namespace

push_reader::push_reader(std::string_view text) noexcept : rest_(text) {
    const std::string_view verb = cut_word(rest_);
    for (std::size_t i = 0; i < verbs.size(); ++i) {
        if (verb == verbs[i]) kind_ = static_cast<push_kind>(i);
    }
    if (!kind_) rest_ = {};
}

std::optional<push_reader::item> push_reader::next() noexcept {
    if (rest_.empty()) return std::nullopt;
    item found{.id = cut_word(rest_)};
    std::array<std::uint64_t, 3> numbers{};
    for (std::size_t i = 0; i < numbers_of[static_cast<std::size_t>(*kind_)]; ++i) {
        const auto number = number_in<std::uint64_t>(cut_word(rest_));
        // A token that no script grants would poison the client's token floor.
        if (!number || *number >= static_cast<std::uint64_t>(end_of_tokens)) {
            rest_ = {};
            return std::nullopt;
        }
        numbers[i] = *number;
    }
    found.token = numbers[0];
    if (kind_ == push_kind::grant) found.ceiling = found.token;
    if (kind_ == push_kind::grant_block) {
        found.ceiling = std::max(numbers[0], numbers[1]);
        found.waiters = numbers[2];
    }
    if (!names_many(*kind_)) rest_ = {};
    return found;
}

std::string push_text(push_kind kind, const push_reader::item& about) {
    std::string text(verbs[static_cast<std::size_t>(kind)]);
    text.append(" ").append(about.id);
    const std::array<std::uint64_t, 3> numbers{about.token, about.ceiling, about.waiters};
    for (std::size_t i = 0; i < numbers_of[static_cast<std::size_t>(kind)]; ++i) {
        text.append(" ").append(std::to_string(numbers[i]));
    }
    return text;
}

}  // namespace holdfast::wire
