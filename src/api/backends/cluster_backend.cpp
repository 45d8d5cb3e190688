#include "api/backends/cluster_backend.hpp"

#include "api/backends/server_backend.hpp"
#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::api {

std::unique_ptr<backend> make_backend(const surroundings& where, const redis::server_settings& settings) {
    if (settings.seeds.empty()) return std::make_unique<server_backend>(where, settings);
    return std::make_unique<cluster_backend>(where, settings);
}

cluster_backend::cluster_backend(const surroundings& where, redis::server_settings settings)
    : settings_(std::move(settings)),
      context_(where.context),
      section_(where.section),
      recorder_(where.recorder),
      next_seed_(where.jitter_seed),
      node_(settings_, *this, where.mistrusted_for, where.jitter_seed),
      acks_(where.context, where.section, settings_, where.jitter_seed) {}

std::vector<redis::server_settings> cluster_backend::members() const {
    std::vector<redis::server_settings> all;
    const redis::slot_map* const map = node_.router().map();
    if (map == nullptr) return all;
    for (const redis::server_address& each : map->primaries()) {
        all.push_back(settings_.for_member(each));
        all.back().use = redis::link_use::member;
    }
    return all;
}

void cluster_backend::look_around(instant now) {
    node_.router().on_timer(now);
    if (std::exchange(has_new_map_, false)) acks_.keep_primaries(*node_.router().map(), now);
    acks_.flush(now);
}

void cluster_backend::pump(instant now) {
    for (std::size_t i = 0; i < links_.size(); ++i) links_[i]->pump(now);
    std::erase_if(closed_, [](const auto& each) { return each->is_quiet(); });
    acks_.pump(now);
}

void cluster_backend::close(instant now) {
    acks_.close(now);
    // No link is made for it now: it expires by itself.
    if (node_.router().is_up(redis::slot_of(card_->key()))) card_->withdraw(*this, now);
    pump(now);
    node_.router().close(now);
}

void cluster_backend::on_timer(instant now) {
    if (!std::exchange(started_, true)) node_.router().start(now);
    for (std::size_t i = 0; i < links_.size(); ++i) links_[i]->session().on_timer(now);
    node_.router().on_timer(now);
    acks_.on_timer(now);
    card_->refresh(*this, now);
}

instant cluster_backend::deadline() const noexcept {
    instant due = std::min({node_.router().deadline(), card_->due(), acks_.deadline()});
    for (const auto& each : links_) due = std::min(due, each->session().deadline());
    return due;
}

redis::session& cluster_backend::open(const redis::server_settings& member, redis::session_listener& told) {
    const auto& made =
        links_.emplace_back(std::make_unique<redis::connection>(context_, section_, member, told, ++next_seed_));
    made->session().on_timer(boot_now());  // begins to connect
    return made->session();
}

void cluster_backend::close(redis::session& link) {
    const auto found =
        std::find_if(links_.begin(), links_.end(), [&](const auto& each) { return &each->session() == &link; });
    HOLDFAST_ASSERT(found != links_.end());
    (*found)->drop();
    closed_.push_back(std::move(*found));
    links_.erase(found);
}

// The card is written as soon as any member is up, and again when its slot has another owner, which may not have it.
void cluster_backend::on_slots_up(const redis::slot_set& which, instant now) {
    const bool is_first = card_->due() == never;
    if (!is_first && !which.has(redis::slot_of(card_->key()))) return;
    card_->on_link_up();
    card_->refresh(*this, now);
}

}  // namespace holdfast::api
