// The sharded channels that a client listens to in a Cluster.
//
// A sharded channel is heard at the owner of its slot only, so each channel follows its slot. A member that loses a
// slot says so by an unasked `sunsubscribe`, often the first sign of a move.
//
// A channel that is not wanted any more stays subscribed for a while: a contended lock is waited for again soon, and
// SUNSUBSCRIBE each time would double the commands.
#pragma once

#include "redis/cluster/map_watch.hpp"
#include "redis/cluster/slot_rests.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::redis {

class cluster_channels {
public:
    cluster_channels(cluster_links& links, map_watch& watch, slot_rests& rests, link_events& events,
                     cluster_effects& effects);
    ~cluster_channels();

    void subscribe(const std::string& name, instant now);
    void unsubscribe(const std::string& name, instant now);
    // Subscribes at the present owners of these slots.
    void follow(const slot_set& slots, instant now);
    // Subscribes where the slot is moving to. A command that is sent there by ASK must find its client listening.
    void follow_ask(hash_slot slot, cluster_link& there, instant now);
    void forget(const cluster_link& which);
    // The present owner has confirmed it.
    bool hears(const std::string& name) const;
    // False: the link to the present owner is up, and nothing can be heard there.
    bool can_be_heard(const std::string& name) const;
    // Wanted channels are heard on this link. What a replica pushes does not count.
    bool needs(const cluster_link& which) const;

    // The answer to a subscription. Returns the slot if MOVED gave it another owner.
    std::optional<hash_slot> answered(channel_command& about, const reply_view& reply, instant now);
    void failed(channel_command& about) { end_subscription(about); }
    // True: the message is for the listener.
    bool pushed(const cluster_link& by, const reply_view& message, instant now);
    // Frees the commands that are over.
    void sweep();

private:
    struct channel {
        hash_slot slot{};
        bool wanted = true;
        unsigned refusals = 0;                                               // since an owner last confirmed it
        std::map<const cluster_link*, std::unique_ptr<channel_command>> at;  // subscribed, or asked for
    };
    using entry = std::pair<const std::string, channel>;
    enum class way { plain, asking };

    void listen(entry& which, cluster_link& at, way how, instant now);
    void listen_at_owner(entry& which, instant now);
    void leave(entry& which, instant now);
    bool end_subscription(channel_command& about);
    std::optional<hash_slot> refused(entry& which, const channel_command& about, const reply_view& refusal,
                                     instant now);
    void forbidden(const std::string& name, const failure& why, instant now);
    void left_by_server(const cluster_link& by, entry& which, instant now);
    bool is_owner(const cluster_link& which, hash_slot slot) const;

    cluster_links& links_;
    map_watch& watch_;
    slot_rests& rests_;
    link_events& events_;
    cluster_effects& effects_;
    std::map<std::string, channel> channels_;
    std::deque<std::string> idle_;                         // not wanted, longest idle first
    std::vector<std::unique_ptr<channel_command>> ended_;  // no channel's any more, perhaps still in flight
};

}  // namespace holdfast::redis
