#include "engine/engine.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace holdfast::engine {

engine::engine(engine_settings settings, const std::vector<node_link>& nodes, random_source& random, observer& watcher)
    : settings_(std::move(settings)), random_(random), watcher_(watcher), client_(random) {
    for (const node_link& node : nodes) {
        voters_.push_back(std::make_unique<voter>(voter_settings{.request_timeout = settings_.request_timeout,
                                                                 .fence_retention = settings_.fence_retention,
                                                                 .lost_margin_percent = settings_.lost_margin_percent,
                                                                 .server = node.server,
                                                                 .channel = settings_.channel_prefix + client_.text()},
                                                  *node.out, random_, *this));
    }
}

engine::~engine() {
    voters_.clear();  // before the ballots that they know
}

std::size_t engine::owned_lock_hash::operator()(const owned_lock& key) const noexcept {
    const auto owner = std::hash<std::uint64_t>{}(static_cast<std::uint64_t>(key.owner));
    return std::hash<std::string>{}(key.lock) ^ (owner * 0x9e3779b97f4a7c15U);
}

hold* engine::find(owner_id owner, const lock_keys& keys) {
    if (owner == owner_id::nobody) return nullptr;
    const auto found = owned_.find(owned_lock{owner, keys.lock});
    return found == owned_.end() ? nullptr : found->second;
}

voter& engine::voter_of(const ballot& b) noexcept {
    return *voters_[b.node()];
}

std::size_t engine::links_up() const {
    return static_cast<std::size_t>(
        std::count_if(voters_.begin(), voters_.end(), [](const auto& one) { return one->link_is_up(); }));
}

void engine::forget_if_gone(hold& h) {
    if (h.in_hand_) return;
    if (votes(h, [](const ballot& b) { return !b.is_gone(); }) > 0) return;
    HOLDFAST_ASSERT(h.quest_ == nullptr && h.releasing_.request == nullptr && h.renewing_.request == nullptr);
    if (h.state_ != state::leaving) return;
    timers_.cancel(h);
    holds_.erase(h.self_);
}

void engine::disown(hold& h) {
    const auto owned = owned_.find(owned_lock{h.terms_.owner, h.terms_.keys->lock});
    if (owned != owned_.end() && owned->second == &h) owned_.erase(owned);
}

void engine::set_timer(hold& h) {
    const instant due = std::min({h.quest_ != nullptr && several() ? h.limit_.deadline : never, h.gather_until_,
                                  h.heal_at_, h.releasing_.answer_by, h.renewing_.answer_by, h.changing_.answer_by});
    if (due == never) {
        timers_.cancel(h);
    } else {
        timers_.set(h, due);
    }
}

void engine::on_timer(instant now) {
    for (const auto& one : voters_) one->on_timer(now);
    while (timed* const due = timers_.take_due(now)) check(static_cast<hold&>(*due), now);
}

instant engine::deadline() const noexcept {
    instant first = timers_.earliest();
    for (const auto& one : voters_) first = std::min(first, one->deadline());
    return first;
}

void engine::abandon(owner_id owner, instant now) {
    std::vector<hold*> left;
    for (const auto& [key, held] : owned_) {
        if (key.owner == owner) left.push_back(held);
    }
    for (hold* const held : left) {
        if (held->state_ == state::held) lose(*held, errc::not_held, now);
        disown(*held);
        for (std::size_t i = 0; i < voters_.size(); ++i) voters_[i]->abandon(held->ballots_[i]);
        held->state_ = state::leaving;
        forget_if_gone(*held);
    }
}

}  // namespace holdfast::engine
