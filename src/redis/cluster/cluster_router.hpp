// Sends every command to the member of a Cluster that owns its key.
//
// Slots have owners, which change without notice: slots move, replicas take over, members join and leave. A member that
// does not own a slot refuses and names the owner (MOVED), or, while the slot is moving, the member that has the key
// already (ASK), or says that neither has all keys (TRYAGAIN).
//
// The router puts its parts together:
//     cluster_links     one link to each member that is needed
//     map_watch         the map: who owns which slot, when to ask for it, when to believe it
//     slot_rests        slots that are not asked for a while
//     cluster_channels  sharded channels, which follow their slots
//     cluster_commands  commands that wait, and what refusals mean for them
// Each part knows those above it in this list. An event changes the parts, and appends what is to happen to
// cluster_effects. carry_out() does that at the end of the event. An upper layer that is called from there may enter
// the router again: what it causes is appended, and done by the loop that is already running.
//
// Sans-I/O, like the sessions below it. After every event of a session, and when deadline() has come, the driver calls
// on_timer(). Lives in the client's serial section.
//
// Invariants (besides those of the parts):
//  (1) No upper layer is called while an event changes the parts.
//  (2) When a link comes up: resubscribe, send the commands that wait, then tell the listener. So a wanted channel is
//      asked for at the owner of its slot before any command that is submitted later.
#pragma once

#include "redis/cluster/cluster_commands.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::redis {

// Makes sessions and moves their bytes: the library by sockets, the simulator by its own network.
class link_maker {
public:
    virtual session& open(const server_settings& member, session_listener& told) = 0;
    // The listener hears nothing of it any more. Never called from within one of the session's callbacks.
    virtual void close(session& link) = 0;

protected:
    ~link_maker() = default;
};

// A link that is up.
struct member_link {
    const server_address& address;
    const server_facts& facts;
    std::uint64_t number;  // no two links of a router have the same
};

// Called in the serial section. May submit, withdraw, subscribe and unsubscribe.
class router_listener {
public:
    // The owner of these slots can be asked now, or is another one. Its channels are subscribed, or asked for. Pushes
    // may be lost, so waiters should ask.
    virtual void on_slots_up(const slot_set& which, const member_link& at, instant now) = 0;
    virtual void on_slots_down(const slot_set& which, const failure& why, instant now) = 0;
    // Precedes the events that follow from the map.
    virtual void on_map(const slot_map& fresh, instant now) = 0;
    virtual void on_push(const reply_view& message, instant now) = 0;
    // The client may not listen there. The channel is forgotten.
    virtual void on_channel_refused(const std::string& channel, const failure& why, instant now) = 0;

protected:
    ~router_listener() = default;
};

class cluster_router final : private link_events {
public:
    // `seeds`: members to ask first, at least one. All other settings of links come from `cluster`.
    cluster_router(server_settings cluster, std::vector<server_address> seeds, link_maker& links, router_listener& told,
                   std::uint64_t jitter_seed);
    cluster_router(const cluster_router&) = delete;
    cluster_router& operator=(const cluster_router&) = delete;

    void start(instant now) {
        watch_.want();
        on_timer(now);
    }
    void submit(command& request, instant now);
    // True if it was not written: it never will be, and is idle again.
    bool withdraw(command& request) { return commands_.withdraw(request); }
    const server_address* whom_to_ask(hash_slot slot) const { return links_.whom_to_ask(slot); }

    void subscribe(const std::string& channel, instant now);
    // The channel stays subscribed for a while.
    void unsubscribe(const std::string& channel, instant now) { channels_.unsubscribe(channel, now); }

    // The present owner of its slot has confirmed that.
    bool hears(const std::string& channel) const { return channels_.hears(channel); }
    // False: the link to its owner is up, and nothing can be heard there.
    bool can_be_heard(const std::string& channel) const { return channels_.can_be_heard(channel); }

    // Connects to the present owner, or asks for the map. Not remembered: ask again when there is another map.
    void want_link(hash_slot slot, instant now);
    bool is_up(hash_slot slot) const {
        const cluster_link* const there = links_.to_owner(slot);
        return there != nullptr && there->serves();
    }
    // Commands without a key can be sent.
    bool anybody_is_up() const noexcept { return links_.some_primary() != nullptr; }
    failure why_not_up(hash_slot slot) const { return commands_.why_not_up(slot); }
    // Null: no member has told it yet.
    const slot_map* map() const noexcept { return map_ ? &*map_ : nullptr; }

    void on_timer(instant now);
    instant deadline() const noexcept {
        if (is_closed_) return never;
        return std::min({commands_.deadline(), rests_.deadline(), watch_.deadline()});
    }
    // Everything ends: written commands as unknown, the others as client_closed.
    void close(instant now);

private:
    void on_link_up(cluster_link& which, instant now) override;
    void on_link_down(cluster_link& which, const failure& why, instant now) override;
    void on_stranded(cluster_link& which, const std::deque<command*>& unwritten, const failure& why,
                     instant now) override;
    void on_push(cluster_link& by, const reply_view& message, instant now) override;
    bool on_refusal(cluster_link& by, command& request, const reply_view& refusal, instant now) override;
    void on_map_answer(cluster_link& by, const reply_view& reply, instant now) override;
    void on_channel_answer(channel_command& about, const reply_view& reply, instant now) override;

    void tell_news();
    void tell_up(const slot_set& which);
    bool may_close(const cluster_link& which) const;
    void close_unneeded_links();
    void carry_out(instant now);
    void carry_out(const drop_link& effect, instant now);

    const server_settings cluster_;
    link_maker& maker_;
    router_listener& told_;
    jitter jitter_;
    std::optional<slot_map> map_;
    cluster_effects effects_;
    cluster_links links_;
    map_watch watch_;
    slot_rests rests_;
    cluster_channels channels_;
    cluster_commands commands_;
    bool is_carrying_out_ = false;
    bool is_closed_ = false;
};

}  // namespace holdfast::redis
