#include "redis/cluster/cluster_channels.hpp"

#include "redis/resp/error_reply.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

constexpr std::size_t most_idle_channels = 256;
constexpr unsigned most_followed_at_once = 5;

}  // namespace

// A subscription at one member, or its end.
class channel_command final : public own_command {
public:
    enum class kind { on, off };

    channel_command(cluster_channels& owner, link_events& events, cluster_link& there, std::string channel, kind what)
        : name(std::move(channel)), at(there), owner_(owner), events_(events) {
        if (what == kind::on) {
            set_sharded_subscription(name);
        } else {
            set_unsubscription(name);
        }
    }

    const std::string name;
    cluster_link& at;
    bool by_asking = false;

private:
    void on_reply(const reply_view& reply, instant now) override { events_.on_channel_answer(*this, reply, now); }
    void on_failure(const failure&, instant) override { owner_.failed(*this); }

    cluster_channels& owner_;
    link_events& events_;
};

cluster_channels::cluster_channels(cluster_links& links, map_watch& watch, slot_rests& rests, link_events& events,
                                   cluster_effects& effects)
    : links_(links), watch_(watch), rests_(rests), events_(events), effects_(effects) {}

cluster_channels::~cluster_channels() = default;

void cluster_channels::subscribe(const std::string& name, instant now) {
    auto [at, is_new] = channels_.try_emplace(name);
    channel& it = at->second;
    if (is_new) {
        it.slot = slot_of(name);
    } else if (!std::exchange(it.wanted, true)) {
        std::erase(idle_, name);
    }
    listen_at_owner(*at, now);
}

void cluster_channels::unsubscribe(const std::string& name, instant now) {
    const auto found = channels_.find(name);
    if (found == channels_.end() || !std::exchange(found->second.wanted, false)) return;
    idle_.push_back(name);
    if (idle_.size() <= most_idle_channels) return;
    const auto oldest = channels_.find(idle_.front());
    idle_.pop_front();
    leave(*oldest, now);
    channels_.erase(oldest);
}

void cluster_channels::listen(entry& which, cluster_link& at, way how, instant now) {
    auto& [name, it] = which;
    if (it.at.contains(&at) || !at.may_be_listened_to()) return;
    auto& request = it.at[&at] = std::make_unique<channel_command>(*this, events_, at, name, channel_command::kind::on);
    if (how == way::asking) {
        routing::set_asking(*request);
        request->by_asking = true;
    }
    at.session().submit(*request, now);
}

// A wanted channel is reason enough to make a link.
void cluster_channels::listen_at_owner(entry& which, instant now) {
    const channel& it = which.second;
    const server_address* const owner = links_.owner(it.slot);
    if (owner == nullptr || !it.wanted || rests_.has(it.slot)) return;
    cluster_link& there = links_.reach(*owner, now);
    if (there.serves()) listen(which, there, way::plain, now);
}

void cluster_channels::follow(const slot_set& slots, instant now) {
    for (entry& each : channels_) {
        if (slots.has(each.second.slot)) listen_at_owner(each, now);
    }
}

void cluster_channels::follow_ask(hash_slot slot, cluster_link& there, instant now) {
    for (entry& each : channels_) {
        if (each.second.slot == slot && each.second.wanted) listen(each, there, way::asking, now);
    }
}

void cluster_channels::leave(entry& which, instant now) {
    for (auto& [at, subscription] : which.second.at) {
        cluster_link& there = subscription->at;
        ended_.push_back(std::move(subscription));
        if (!there.up()) continue;
        auto& off = ended_.emplace_back(
            std::make_unique<channel_command>(*this, events_, there, which.first, channel_command::kind::off));
        there.session().submit(*off, now);
    }
    which.second.at.clear();
}

void cluster_channels::forget(const cluster_link& which) {
    for (auto& [name, it] : channels_) {
        if (auto found = it.at.extract(&which)) ended_.push_back(std::move(found.mapped()));
    }
}

bool cluster_channels::is_owner(const cluster_link& which, hash_slot slot) const {
    const server_address* const owner = links_.owner(slot);
    return owner != nullptr && *owner == which.address();
}

bool cluster_channels::hears(const std::string& name) const {
    const auto found = channels_.find(name);
    if (found == channels_.end()) return false;
    const cluster_link* const owner = links_.to_owner(found->second.slot);
    if (owner == nullptr || !owner->serves()) return false;
    const auto at = found->second.at.find(owner);
    return at != found->second.at.end() && at->second->life() == command::state::done;
}

bool cluster_channels::can_be_heard(const std::string& name) const {
    const cluster_link* const owner = links_.to_owner(slot_of(name));
    return owner == nullptr || !owner->up() || owner->may_be_listened_to();
}

bool cluster_channels::needs(const cluster_link& which) const {
    return std::any_of(channels_.begin(), channels_.end(), [&](const entry& each) {
        const channel& it = each.second;
        const auto found = it.at.find(&which);
        return it.wanted && found != it.at.end() && (found->second->by_asking || is_owner(which, it.slot));
    });
}

// False: it was no channel's any more.
bool cluster_channels::end_subscription(channel_command& about) {
    const auto found = channels_.find(about.name);
    if (found == channels_.end()) return false;
    const auto at = found->second.at.find(&about.at);
    if (at == found->second.at.end() || at->second.get() != &about) return false;
    ended_.push_back(std::move(at->second));
    found->second.at.erase(at);
    return true;
}

std::optional<hash_slot> cluster_channels::answered(channel_command& about, const reply_view& reply, instant now) {
    if (reply.is_error() && !end_subscription(about)) return std::nullopt;
    const auto found = channels_.find(about.name);
    if (found == channels_.end()) return std::nullopt;
    if (about.by_asking) {
        // The move is over or was called off: only the owner counts.
        if (reply.is_error()) listen_at_owner(*found, now);
    } else if (reply.is_error()) {
        return refused(*found, about, reply, now);
    } else {
        found->second.refusals = 0;
    }
    return std::nullopt;
}

// The first refusals are followed at once. Then, or if a refusal leads nowhere, the slot rests longer each time: two
// members may name each other until the move of the slot is complete.
std::optional<hash_slot> cluster_channels::refused(entry& which, const channel_command& about,
                                                   const reply_view& refusal, instant now) {
    cluster_link& by = about.at;
    channel& it = which.second;
    const auto meant = read_redirect(refusal.text(), by.address());
    failure why = classify_error(refusal.text(), by.display());
    std::optional<hash_slot> moved;
    if (!meant && is_permanent(why.code)) {
        forbidden(about.name, why, now);
        return moved;
    }
    if (meant && meant->what == redirect::kind::spoiled_link) {
        effects_.drop(by, std::move(why), drop_link::next::rest);
        return moved;
    }
    const bool has_moved = meant && meant->what == redirect::kind::moved && meant->to != by.address();
    const unsigned at_once = has_moved ? most_followed_at_once : 0;
    if (it.refusals >= at_once) rests_.begin(it.slot, {.rests_before = it.refusals - at_once}, std::move(why), now);
    ++it.refusals;
    watch_.want();
    if (has_moved && watch_.learn(by, *meant)) {
        moved = meant->slot;
        follow(slot_set(meant->slot), now);
    }
    listen_at_owner(which, now);
    return moved;
}

void cluster_channels::forbidden(const std::string& name, const failure& why, instant now) {
    const auto found = channels_.find(name);
    std::erase(idle_, name);
    leave(*found, now);  // it may be on its way to other members
    channels_.erase(found);
    effects_.add(tell_channel_refused{name, why});
}

bool cluster_channels::pushed(const cluster_link& by, const reply_view& message, instant now) {
    if (message.size() < 2) return false;
    const std::string_view kind = message[0].text();
    const auto found = channels_.find(std::string(message[1].text()));
    if (found == channels_.end()) return false;
    const auto at = found->second.at.find(&by);
    if (at == found->second.at.end()) return false;  // the confirmation that we have left
    if (kind == "sunsubscribe") {
        // Before the present subscription is confirmed this is the end of an earlier one.
        if (at->second->life() == command::state::done) left_by_server(by, *found, now);
        return false;
    }
    return kind == "smessage" && (at->second->by_asking || is_owner(by, found->second.slot));
}

// The slot has left, or was away. If the map still has it here, the channel is asked for again here, and the refusal
// names the new owner. Pushes since then are lost, so waiters must ask.
void cluster_channels::left_by_server(const cluster_link& by, entry& which, instant now) {
    if (auto subscription = which.second.at.extract(&by)) ended_.push_back(std::move(subscription.mapped()));
    watch_.want();
    if (!which.second.wanted || !is_owner(by, which.second.slot)) return;
    listen_at_owner(which, now);  // the other channels of the slot get their own sunsubscribe
    watch_.note_gap(by, which.second.slot);
}

void cluster_channels::sweep() {
    std::erase_if(ended_, [](const auto& each) {
        return each->life() == command::state::idle || each->life() == command::state::done;
    });
}

}  // namespace holdfast::redis
