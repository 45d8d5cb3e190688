// The sharded channels of a cluster_router.
//
// A sharded channel is heard at the owner of its slot only, so it is followed there. A member that loses a slot says so
// by an unasked `sunsubscribe`, which is often the first that is heard of a move.
#include "redis/cluster/cluster_parts.hpp"
#include "redis/resp/error_reply.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {
namespace {

// A lock that is fought for is waited for again soon; to unsubscribe each time would double the commands.
constexpr std::size_t most_idle_channels = 256;
constexpr unsigned most_followed_at_once = 5;

}  // namespace

void cluster_router::subscribe(const std::string& name, instant now) {
    auto [at, is_new] = channels_.try_emplace(name);
    channel& it = at->second;
    if (is_new) {
        it.slot = slot_of(name);
    } else if (!std::exchange(it.wanted, true)) {
        std::erase(idle_channels_, name);
    }
    listen_at_owner(*at, now);
}

void cluster_router::unsubscribe(const std::string& name, instant now) {
    const auto found = channels_.find(name);
    if (found == channels_.end() || !std::exchange(found->second.wanted, false)) return;
    idle_channels_.push_back(name);
    if (idle_channels_.size() <= most_idle_channels) return;
    const auto oldest = channels_.find(idle_channels_.front());
    idle_channels_.pop_front();
    leave(*oldest, now);
    channels_.erase(oldest);
}

void cluster_router::listen(channel_entry& which, link& at, way how, instant now) {
    auto& [name, it] = which;
    if (it.at.contains(&at) || !at.may_be_listened_to()) return;
    auto& request = it.at[&at] = std::make_unique<channel_command>(*this, at, name, channel_command::kind::on);
    if (how == way::asking) {
        routing::set_asking(*request);
        request->by_asking = true;
    }
    at.session().submit(*request, now);
}

// Where there is no link yet it is made: a wanted channel is reason enough.
void cluster_router::listen_at_owner(channel_entry& which, instant now) {
    const auto& it = which.second;
    const server_address* const owner = map_ ? map_->owner(it.slot) : nullptr;
    if (owner == nullptr || !it.wanted || rests(it.slot) || closed_) return;
    link& there = link_to(*owner);
    if (there.serves()) {
        listen(which, there, way::plain, now);
    } else {
        there.session().hurry(now);
    }
}

void cluster_router::listen_in(const slot_bits& slots, instant now) {
    for (channel_entry& each : channels_) {
        if (slots.has(each.second.slot)) listen_at_owner(each, now);
    }
}

void cluster_router::leave(channel_entry& which, instant now) {
    for (auto& [at, subscription] : which.second.at) {
        link& there = subscription->at;
        ended_.push_back(std::move(subscription));
        if (!there.up()) continue;
        auto& off = ended_.emplace_back(
            std::make_unique<channel_command>(*this, there, which.first, channel_command::kind::off));
        there.session().submit(*off, now);
    }
    which.second.at.clear();
}

void cluster_router::forget_link(link& which) {
    for (auto& [name, it] : channels_) {
        if (auto found = it.at.extract(&which)) ended_.push_back(std::move(found.mapped()));
    }
}

// Those that are heard there: a replica of the owner takes subscriptions, too, but what it pushes does not count.
bool cluster_router::has_channels(const link& at) const {
    return std::any_of(channels_.begin(), channels_.end(), [&](const channel_entry& each) {
        const channel& it = each.second;
        const auto found = it.at.find(&at);
        if (!it.wanted || found == it.at.end()) return false;
        const server_address* const owner = map_->owner(it.slot);
        return found->second->by_asking || (owner != nullptr && *owner == at.address());
    });
}

bool cluster_router::channel_lost(channel_command& about) {
    const auto found = channels_.find(about.name);
    if (found == channels_.end()) return false;
    const auto at = found->second.at.find(&about.at);
    if (at == found->second.at.end() || at->second.get() != &about) return false;
    ended_.push_back(std::move(at->second));
    found->second.at.erase(at);
    return true;
}

void cluster_router::channel_answered(channel_command& about, const reply_view& reply, instant now) {
    if (reply.is_error() && !channel_lost(about)) return;
    const auto found = channels_.find(about.name);
    if (found == channels_.end()) return;
    if (about.by_asking) {
        // The move is over or was called off: the owner is what counts.
        if (reply.is_error()) listen_at_owner(*found, now);
    } else if (reply.is_error()) {
        channel_refused(*found, about, reply, now);
    } else {
        found->second.refusals = 0;
    }
}

// Followed at once a few times, and then, or if it leads nowhere, asked for again after rests that grow: two members
// may name each other for as long as whoever moves slots is not done.
void cluster_router::channel_refused(channel_entry& which, const channel_command& about, const reply_view& refusal,
                                     instant now) {
    link& by = about.at;
    channel& it = which.second;
    const auto meant = read_redirect(refusal.text(), by.address());
    failure why = classify_error(refusal.text(), by.session().settings().display());
    if (!meant && is_permanent(why.code)) return channel_forbidden(which, why, now);
    if (meant && meant->what == redirect::kind::spoiled_link) return by.session().distrust(std::move(why), now);
    const bool has_moved = meant && meant->what == redirect::kind::moved && meant->to != by.address();
    const unsigned at_once = has_moved ? most_followed_at_once : 0;
    if (it.refusals >= at_once) rest_slot(it.slot, {.before = it.refusals - at_once}, std::move(why), now);
    ++it.refusals;
    want_map();
    if (has_moved) learn_moved(by, *meant, now);
    listen_at_owner(which, now);  // unless the slot rests
    tell_new_primary(now);
}

void cluster_router::channel_forbidden(channel_entry& which, const failure& why, instant now) {
    const std::string name = which.first;
    std::erase(idle_channels_, name);
    leave(which, now);  // it may be on its way to others, too
    channels_.erase(name);
    told_.on_channel_refused(name, why, now);
}

void cluster_router::pushed(link& by, const reply_view& message, instant now) {
    if (message.size() < 2) return;
    const std::string_view kind = message[0].text();
    const auto found = channels_.find(std::string(message[1].text()));
    if (found == channels_.end()) return;
    const auto at = found->second.at.find(&by);
    if (at == found->second.at.end()) return;  // we have left, and it says so
    if (kind == "sunsubscribe") {
        // Before the present subscription is confirmed that is the end of an earlier one, which we have left.
        if (at->second->life() == command::state::done) left_by_server(by, *found, now);
        return;
    }
    const server_address* const owner = map_->owner(found->second.slot);
    const bool is_owner = owner != nullptr && *owner == by.address();
    if (kind == "smessage" && (is_owner || at->second->by_asking)) told_.on_push(message, now);
}

// The slot has left, or was away. Where the map still has it here, asking for the channel again will be refused by who
// has it now; and what was pushed meanwhile is lost, so whoever waits should ask.
void cluster_router::left_by_server(link& by, channel_entry& which, instant now) {
    if (auto subscription = which.second.at.extract(&by)) ended_.push_back(std::move(subscription.mapped()));
    want_map();
    const server_address* const owner = map_->owner(which.second.slot);
    if (!which.second.wanted || owner == nullptr || *owner != by.address()) return;
    listen_at_owner(which, now);  // those of the same slot are told of their own end
    slot_news& news = some_news({errc::moving, by.session().settings().display() + ": the slot has moved"});
    news.lost.add(which.second.slot);
    news.gained.add(which.second.slot);
}

}  // namespace holdfast::redis
