#include "engine/quorum/majority_watch.hpp"

#include "engine/node/parts.hpp"

#include <algorithm>
#include <functional>

namespace holdfast::engine {
namespace {

// The tokens of a holder that can be asked back move with its renewals, at each node to another one.
bool is_marked(const wire::watch_answer& seen) {
    return !seen.is_free() && wire::mark_of(seen.holder) != wire::mark::none;
}

bool agree(const wire::watch_answer& a, const wire::watch_answer& b) {
    return a.holder == b.holder && (a.is_free() || a.token == b.token || is_marked(a));
}

// The one that so many of them reach.
template <typename Value>
Value reached_by(std::size_t so_many, std::vector<Value> values) {
    std::ranges::sort(values, std::greater<>());
    return values[so_many - 1];
}

wire::watch_answer one_of(std::size_t majority, const std::vector<const wire::watch_answer*>& same) {
    wire::watch_answer one = *same.front();
    std::vector<fencing_token> tokens;
    std::vector<milliseconds> left;
    for (const wire::watch_answer* each : same) {
        tokens.push_back(each->token);
        left.push_back(each->left.value_or(milliseconds::max()));
        if (one.note.empty()) one.note = each->note;
    }
    // One node alone may have a greater token, by its clock or of a hold that no majority had.
    one.token = reached_by(majority, tokens);
    const milliseconds lasts = reached_by(majority, left);
    one.left = lasts == milliseconds::max() ? std::nullopt : std::optional(lasts);
    return one;
}

}  // namespace

std::optional<wire::watch_answer> majority_sight::common() const {
    for (const view& candidate : nodes_) {
        if (!candidate.says) continue;
        std::vector<const wire::watch_answer*> same;
        for (const view& each : nodes_) {
            if (each.says && agree(*candidate.says, *each.says)) same.push_back(&*each.says);
        }
        if (same.size() >= majority()) return one_of(majority(), same);
    }
    return std::nullopt;
}

void majority_sight::forget_what_is_older_than(const wire::watch_answer& told, const std::string& holder_before) {
    for (view& each : nodes_) {
        if (!each.says || agree(told, *each.says)) continue;
        const bool is_newer = each.says->token > told.token && each.says->holder != holder_before;
        if (!is_newer) each.says.reset();
    }
}

bool majority_sight::is_out_of_reach() const noexcept {
    const auto silent = std::ranges::count(nodes_, true, &view::is_silent);
    return nodes_.size() - static_cast<std::size_t>(silent) < majority();
}

majority_watch::majority_watch(std::size_t nodes, std::shared_ptr<watch_listener> listener)
    : listener_(std::move(listener)), sight_(nodes) {
    views_.reserve(nodes);
    for (std::size_t i = 0; i < nodes; ++i) views_.emplace_back(*this, i);
}

void majority_watch::on_sight(std::size_t node, const wire::watch_answer& seen) {
    sight_.said(node, seen);
    if (!sight_.is_out_of_reach()) was_told_trouble_ = false;
    auto now_has = sight_.common();
    if (!now_has) return;
    if (now_has->is_free()) {
        now_has->token = std::max(now_has->token, greatest_);
    } else if (now_has->token != 0 && now_has->token < greatest_ && !(last_ && last_->holder == now_has->holder)) {
        return;  // (3)
    }
    greatest_ = std::max(greatest_, now_has->token);
    if (last_ && is_same(*last_, *now_has)) return;
    const std::string before = last_ ? last_->holder : "";
    last_ = *now_has;
    sight_.forget_what_is_older_than(*last_, before);  // (4)
    listener_->on_sight(*last_);
}

void majority_watch::on_trouble(std::size_t node, const failure& why) {
    sight_.is_silent(node);
    if (!sight_.is_out_of_reach() || std::exchange(was_told_trouble_, true)) return;
    listener_->on_trouble(why);
}

}  // namespace holdfast::engine
