#include "engine/engine.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace holdfast::engine {

engine::engine(engine_settings settings, const std::vector<node_link>& nodes, random_source& random, observer& watcher)
    : settings_(std::move(settings)), random_(random), watcher_(watcher), client_(random) {
    for (const node_link& node : nodes) {
        agents_.push_back(
            std::make_unique<node_agent>(node_agent_settings{.request_timeout = settings_.request_timeout,
                                                             .fence_retention = settings_.fence_retention,
                                                             .lost_margin_percent = settings_.lost_margin_percent,
                                                             .clock_skew = settings_.clock_skew,
                                                             .most_renewals = settings_.most_renewals,
                                                             .server = node.server,
                                                             .listens = node.listens},
                                         client_, *node.out, random_, *this));
    }
}

engine::~engine() {
    agents_.clear();  // before the node_holds that they know
    holds_.clear_and_dispose(hold::deleter{});
}

std::size_t engine::owned_lock_hash::operator()(const owned_lock& key) const noexcept {
    const auto owner = std::hash<std::uint64_t>{}(static_cast<std::uint64_t>(key.owner));
    return std::hash<std::string>{}(key.lock) ^ (owner * 0x9e3779b97f4a7c15U);
}

hold* engine::find(owner_id owner, const lock_keys& keys) {
    if (owner == owner_id::nobody) return nullptr;
    const auto found = owned_.find(owned_lock{owner, keys.lock()});
    return found == owned_.end() ? nullptr : found->second;
}

node_agent& engine::agent_of(const node_hold& b) noexcept {
    return *agents_[b.node()];
}

bool engine::was_reached() const noexcept {
    const auto reached =
        std::count_if(agents_.begin(), agents_.end(), [](const auto& one) { return one->was_reached(); });
    return static_cast<std::size_t>(reached) >= majority();
}

std::size_t engine::links_up(const hold& h) const {
    return votes(h, [this](const node_hold& b) { return agents_[b.node()]->link_is_up(b); });
}

void engine::forget_if_gone(hold& h) {
    check_pace(h);
    if (h.in_hand_) return;
    if (votes(h, [](const node_hold& b) { return !b.is_gone(); }) > 0) return;
    HOLDFAST_ASSERT(!h.is_asked_for() && !is_waited_for(h, answer_to::release) &&
                    !is_waited_for(h, answer_to::renewal));
    if (h.state_ != state::leaving) return;
    drop_pending(h);
    holds_.erase_and_dispose(holds_.iterator_to(h), hold::deleter{});
}

void engine::drop_pending(hold& h) noexcept {
    if (!h.pending_) return;
    timers_.cancel(*h.pending_);
    spare_pending_.give_back(std::move(h.pending_));
}

pending_work& engine::under_way(hold& h) {
    if (!h.pending_) {
        h.pending_ = spare_pending_.take();
        h.pending_->whole = &h;
    }
    return *h.pending_;
}

void engine::disown(hold& h) {
    const auto owned = owned_.find(owned_lock{h.terms_.owner, h.terms_.keys->lock()});
    if (owned != owned_.end() && owned->second == &h) owned_.erase(owned);
}

// Where there is one node, a hold that is simply held has no pending_work, and needs no memory for them.
void engine::set_timer(hold& h) {
    if (!h.pending_) return;
    pending_work& all = *h.pending_;
    instant due = h.is_asked_for() && (several() || h.held_back_) ? all.acquisition.limit.deadline : never;
    due = std::min({due, all.acquisition.reach_by, all.acquisition.gather_until, all.heal_at});
    due = std::min(due, std::min(all.releasing.answer_by, all.renewing.answer_by));
    due = std::min(due, all.changing.answer_by);
    if (due != never) return timers_.set(all, due);
    timers_.cancel(all);
    const bool idle = !h.is_asked_for() && !is_waited_for(h, answer_to::release) &&
                      !is_waited_for(h, answer_to::renewal) && !is_waited_for(h, answer_to::change);
    if (idle && !several()) drop_pending(h);
}

void engine::keep_listening(const lock_keys& keys) {
    for (const auto& each : agents_) each->keep_listening(keys);
}

void engine::on_timer(instant now) {
    for (const auto& one : agents_) one->on_timer(now);
    while (timed* const due = timers_.take_due(now)) check(*static_cast<pending_work&>(*due).whole, now);
}

instant engine::deadline() const noexcept {
    instant first = timers_.earliest();
    for (const auto& one : agents_) first = std::min(first, one->deadline());
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
        for (node_hold& b : held->votes()) agent_of(b).abandon(b);
        held->state_ = state::leaving;
        forget_if_gone(*held);
    }
}

}  // namespace holdfast::engine
