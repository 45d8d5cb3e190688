#include "world/client.hpp"

#include <algorithm>
#include <utility>

#include "world/cluster_backend.hpp"
#include "world/server_backend.hpp"

namespace holdfast::sim {
namespace {

constexpr std::chrono::seconds owner_search_interval{1};
constexpr std::chrono::seconds dead_link_detection{2};

}  // namespace

client::client(timeline& time, random_stream random, random_source& ids, client_setup setup, network& net)
    : time_(time), random_(random), setup_(std::move(setup)) {
    std::vector<engine::node_link> nodes;
    for (std::size_t i = 0; i < setup_.servers; ++i) {
        backends_.push_back(make_backend(i, net));
        nodes.push_back(backends_.back()->link());
    }
    engine::observer& watched_by = *this;
    engine_ = std::make_unique<engine::engine>(setup_.engine, nodes, ids, watched_by);
    for (std::size_t i = 0; i < backends_.size(); ++i) backends_[i]->attach(engine_->node(i));
    trouble_until_ = time_.now();
}

std::unique_ptr<backend> client::make_backend(std::size_t node, network& net) {
    if (!setup_.server.seeds.empty())
        return std::make_unique<cluster_backend>(*this, setup_.server, random_.next(), net);
    return std::make_unique<server_backend>(*this, node, setup_.server, random_.next(), net);
}

void client::start() {
    for (const auto& one : backends_) one->on_timer();
    settle();
}

void client::pause_until(instant then) {
    if (dead_ || paused_) return;
    pause();
    time_.at(then, [this] {
        if (!dead_) resume(random_.percent(50) ? first::timers : first::messages);
    });
}

void client::pause() {
    paused_ = true;
    paused_at_ = time_.now();
}

void client::resume(first what_first) {
    paused_ = false;
    resumed_at_ = time_.now();
    trouble_passes();
    if (setup_.clock_stops_in_pauses) slept_ += time_.now() - paused_at_;
    std::vector<timeline::action> late = std::exchange(postponed_, {});
    if (what_first == first::timers) on_alarm();
    for (auto& what : late) {
        if (!dead_) what();
        settle();
    }
    if (!dead_) on_alarm();
    settle();
    if (!dead_ && has_dead_link()) trouble_until_noticed();
}

void client::die() {
    dead_ = true;
    postponed_.clear();
    for (const auto& one : backends_) one->forget_links();
}

void client::close() {
    for (const auto& one : backends_) one->close();
    settle();
    dead_ = true;
}

void client::trouble_passes(instant from) {
    trouble_until(from + aftermath);
}

void client::trouble_until_noticed() {
    trouble_until(time_.now() + dead_link_detection);
}

// True if nothing arrives over one of its links any more and the client has not noticed.
bool client::has_dead_link() const {
    for (const auto& one : backends_) {
        for (plug* const each : one->plugs()) {
            if (each->wire() != nullptr && each->wire()->down.is_lost()) return true;
        }
    }
    return false;
}

bool client::calm_since(instant since) const {
    const bool up = std::all_of(backends_.begin(), backends_.end(), [](const auto& one) { return one->all_up(); });
    return !dead_ && !paused_ && up && trouble_until_ < since;
}

// A client links to a member of a Cluster when it first needs it. It finds a new primary by asking the other members,
// in the end once a second.
bool client::may_still_be_connecting(const wire::lock_keys& lock, instant since) const {
    const bool reached =
        std::all_of(backends_.begin(), backends_.end(), [&](const auto& one) { return one->reaches(lock); });
    return !reached && time_.now() < std::max(since, trouble_until_ + owner_search_interval) + aftermath;
}

void client::settle() {
    if (dead_) return;
    for (const auto& one : backends_) one->catch_up();
    instant due = engine_->deadline();
    for (const auto& one : backends_) {
        one->settle();
        due = std::min(due, one->deadline());
    }
    due = std::min(due, engine_->deadline());
    if (due == never || due == armed_) return;
    armed_ = due;
    time_.at(due + slept_, [this, due] {
        if (armed_ != due) return;
        armed_ = never;
        when_awake([this] { on_alarm(); });
    });
}

void client::on_alarm() {
    for (const auto& one : backends_) one->on_timer();
    engine_->on_timer(now());
}

}  // namespace holdfast::sim
