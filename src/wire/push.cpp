#include "wire/push.hpp"

#include "wire/entry.hpp"

#include <array>

namespace holdfast::wire {
namespace {

constexpr std::array<std::string_view, 4> verbs{"grant", "poll", "revoked", "recall"};

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
    if (kind_ != push_kind::poll) {
        const auto token = number_in<std::uint64_t>(cut_word(rest_));
        if (!token) {
            rest_ = {};
            return std::nullopt;
        }
        found.token = *token;
    }
    if (kind_ != push_kind::grant) rest_ = {};
    return found;
}

std::string push_text(push_kind kind, const push_reader::item& about) {
    std::string text(verbs[static_cast<std::size_t>(kind)]);
    text.append(" ").append(about.id);
    if (kind != push_kind::poll) text.append(" ").append(std::to_string(about.token));
    return text;
}

}  // namespace holdfast::wire
