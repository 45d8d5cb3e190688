// Sends every command to the member of a Cluster that owns its key, wherever that is by now.
//
// A Cluster divides keys into slots; the slots have owners, and both may change at any time: slots are moved, primaries
// die and replicas take their place, members join and leave. Nobody announces that. A member that is asked for what it
// does not own refuses and says who does (MOVED), or, while a slot is moving, who has the key already (ASK), or that
// neither side has all of them (TRYAGAIN). So the map is a guess which refusals put right: it is read as a whole from
// CLUSTER SHARDS, patched by MOVED, and read again whenever something shows that it is wrong, by one question for all.
//
//     submit --> the owner's link is up? --> its session --refused--> followed at once, or after a rest
//                   | no map, no link, slot rests                        |
//                   v                                                    |
//                 line_  <-----------------------------------------------+
//
// One link per primary, made when something is for it. Sharded channels are followed to wherever their slot is.
//
// Sans-I/O, like the sessions below it. After every event of a session, and when deadline() has come, the driver calls
// on_timer(). Lives in the client's serial section.
//
// Invariants:
//  (1) A command is at one place: in line_, in the line of one link, in one session, or nowhere. What its owner
//  abandoned
//      is never sent again.
//  (2) ASK is followed once, by the command that it answered, and while it is fresh. A one-key script that is sent
//      there by habit would run beside the key that is still at the old place, or is there again.
//  (3) Only the one whom the map calls the owner of a slot is believed about who owns it now: late refusals of former
//      owners do not put the map back. Nor does a member that hears nothing of the others: a map by which one that
//      serves is no primary any more counts only if that one says so itself, or those who are to have its slots serve.
//  (4) Commands of several keys keep their order within a slot while it rests, and what is sent again goes before what
//      is new. Those of one key pass, and renewals: they are not to wait for somebody's turn in line, and not for as
//      long as others have been told again and again to wait.
//  (5) A wanted channel is asked for at the owner of its slot before any command that is submitted later.
//  (6) Nobody is told of moved slots while a command is on its way from one place to the next: whoever is told may
//      withdraw it. And of many that are read at once all are told in one: each time everything that waits is gone
//      through.
#pragma once

#include "redis/cluster/redirect.hpp"
#include "redis/cluster/slot_map.hpp"
#include "redis/session/command_queue.hpp"
#include "redis/session/jitter.hpp"
#include "redis/session/session.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast::redis {

// Makes sessions and moves their bytes: the library by sockets, the simulator by its own network.
class link_maker {
public:
    virtual session& open(const server_settings& member, session_listener& told) = 0;
    // Nothing is told of it any more. Never from within one of its callbacks.
    virtual void close(session& link) = 0;

protected:
    ~link_maker() = default;
};

// Which slots an event is about.
class slot_set {
public:
    virtual bool has(hash_slot slot) const noexcept = 0;

protected:
    ~slot_set() = default;
};

// A link that is up.
struct member_link {
    const server_address& address;
    const server_facts& facts;
    std::uint64_t number;  // no two links of a router have the same
};

// Told in the serial section. May submit, withdraw, subscribe and unsubscribe.
class router_listener {
public:
    // Their owner can be asked now, or is another than before; channels are asked for there already. Whoever waits for
    // a push should ask.
    virtual void on_slots_up(const slot_set& which, const member_link& at, instant now) = 0;
    virtual void on_slots_down(const slot_set& which, const failure& why, instant now) = 0;
    // Before the events that follow from it, and perhaps while a command is on its way: may want links, but not submit.
    virtual void on_map(const slot_map& fresh, instant now) = 0;
    virtual void on_push(const reply_view& message, instant now) = 0;
    // We may not listen there; it is forgotten.
    virtual void on_channel_refused(const std::string& channel, const failure& why, instant now) = 0;

protected:
    ~router_listener() = default;
};

class cluster_router final {
public:
    // `seeds`: members to ask first, at least one. All links have what else `cluster` says.
    cluster_router(server_settings cluster, std::vector<server_address> seeds, link_maker& links, router_listener& told,
                   std::uint64_t jitter_seed);
    ~cluster_router();
    cluster_router(const cluster_router&) = delete;
    cluster_router& operator=(const cluster_router&) = delete;

    void start(instant now);
    void submit(command& request, instant now);
    // True if it was not written: it never will be, and is idle again.
    bool withdraw(command& request);
    // The member to which a command for this slot goes; null if there is none yet.
    const server_address* whom_to_ask(hash_slot slot) const;

    void subscribe(const std::string& channel, instant now);
    // It stays subscribed for a while: most are wanted again soon.
    void unsubscribe(const std::string& channel, instant now);

    // Its present owner is dialled, or, where nobody is known to own it, asked for. Not remembered: whoever still wants
    // a link when there is another map says so again.
    void want_link(hash_slot slot, instant now);
    bool is_up(hash_slot slot) const noexcept;
    // What has no key can be sent.
    bool anybody_is_up() const noexcept;
    // Of the owner's present link; null if it is not up.
    const server_facts* facts(hash_slot slot) const noexcept;
    // Why nothing for this slot can be sent now, as far as known.
    failure why_not_up(hash_slot slot) const;
    // Null: nobody has told it yet.
    const slot_map* map() const noexcept { return map_ ? &*map_ : nullptr; }

    void on_timer(instant now);
    instant deadline() const noexcept;
    // Everything ends: written commands as unknown, the others as client_closed.
    void close(instant now);

private:
    class link;
    class own_command;
    class map_question;
    class channel_command;
    class slot_bits;
    struct slot_news;
    enum class way { plain, asking };
    struct channel {
        hash_slot slot{};
        bool wanted = true;
        unsigned refusals = 0;  // since it was last confirmed by an owner
        // Where it is subscribed, or about to be.
        std::map<const link*, std::unique_ptr<channel_command>> at;
    };
    struct slot_rest {
        instant until{};
        instant until_for_those_that_pass{};  // they rest for what such as they were told, and for nobody else
        failure why = {};
    };
    struct rest_due {
        unsigned before = 0;  // how often it has rested already
        bool of_one_that_passes = false;
    };
    struct half_runs {
        unsigned in_a_row = 0;
        instant last{};
    };
    using channel_entry = std::pair<const std::string, channel>;

    // --- commands: cluster_router.cpp
    bool rests(hash_slot slot) const { return rests_.contains(slot); }
    bool must_queue(const command& request) const {
        return !routing::passes_others(request) && rests(slot_of(request.first_key()));
    }
    link* target(const command& request) const;
    const server_address* some_primary() const;
    bool hand_over(command& request, instant now);
    void put_back(command& request, instant now);
    void want_target(const command& request, instant now);
    void send_again(command& request, failure why, instant now);
    void rest(command& request, failure why, instant now);
    void rest_slot(hash_slot slot, rest_due due, failure why, instant now);
    bool must_rest(const command& request, instant now) const;
    void stopped_half_way(command& request, failure why, instant now);
    bool refused(link& by, command& request, const reply_view& refusal, instant now);
    void follow(link& by, command& request, const redirect& meant, failure why, instant now);
    void ask_there(link& by, command& request, const redirect& meant, instant now);
    void send_asking(link& there, command& request, instant now);
    void call_back_asked(const slot_bits& moved, instant now);
    void end_rests(instant now);
    void flush(instant now);
    void fail_all(const std::deque<command*>& ended, const failure& why, instant now);
    void fail_due(instant now);

    // --- links and the map: cluster_links.cpp
    link* find_link(const server_address& address) const;
    link& link_to(const server_address& address);
    link* some_link_that_is_up();
    std::vector<server_address> who_may_know() const;
    slot_bits slots_of(const server_address& owner) const;
    void link_up(link& which, instant now);
    void link_down(link& which, const failure& why, instant now);
    void stranded(link& which, const std::deque<command*>& unwritten, const failure& why, instant now);
    void give_up_if_nobody_is_left(instant now);
    void fail_those_for(const link& which, const failure& why, instant now);
    void want_map() noexcept { map_wanted_ = true; }
    void look_again(instant now);
    void ask_map(instant now);
    void dial(instant now);
    void dial_some_of(std::span<const server_address> all, instant now);
    [[nodiscard]] bool misses_a_primary() const;
    void map_answered(link& by, const reply_view& reply, instant now);
    std::vector<server_address> doubtful_owners(const slot_map& fresh, const link& by) const;
    void doubt(const slot_map& fresh, const std::vector<server_address>& owners, instant now);
    void adopt(slot_map fresh, instant now);
    void learn_moved(link& by, const redirect& meant, instant now);
    slot_news& some_news(failure why);
    void tell_new_primary(instant now);
    void tell_news(instant now);
    void tell_up(const slot_bits& which, instant now);
    void greet_promoted(const slot_map& by, instant now);
    bool is_named(const server_address& address) const;
    bool may_close(const link& which) const;
    void tidy();

    // --- channels: cluster_channels.cpp
    void listen(channel_entry& which, link& at, way how, instant now);
    void listen_at_owner(channel_entry& which, instant now);
    void listen_in(const slot_bits& slots, instant now);
    void leave(channel_entry& which, instant now);
    void forget_link(link& which);
    bool has_channels(const link& at) const;
    void channel_answered(channel_command& about, const reply_view& reply, instant now);
    void channel_refused(channel_entry& which, const channel_command& about, const reply_view& refusal, instant now);
    void channel_forbidden(channel_entry& which, const failure& why, instant now);
    // False: it was no channel's any more.
    bool channel_lost(channel_command& about);
    void pushed(link& by, const reply_view& message, instant now);
    void left_by_server(link& by, channel_entry& which, instant now);

    const server_settings cluster_;
    const std::vector<server_address> seeds_;
    link_maker& maker_;
    router_listener& told_;
    jitter jitter_;

    std::optional<slot_map> map_;
    std::unique_ptr<slot_news> news_;  // null: nothing is to be told
    std::map<server_address, std::unique_ptr<link>> links_;
    std::uint64_t links_made_ = 0;
    command_queue line_;
    bool flush_due_ = false;  // something in line_ may be able to go
    std::map<hash_slot, slot_rest> rests_;
    instant rest_ends_at_ = never;              // not before
    std::map<hash_slot, half_runs> half_runs_;  // lately

    std::unique_ptr<map_question> question_;
    bool map_wanted_ = false;
    std::vector<server_address> doubted_;  // owners by the last map that was not adopted
    bool dialling_ = false;                // whoever comes up is asked at once: nobody else could be, or settled it
    instant ask_map_at_{};                 // not before
    std::chrono::milliseconds ask_map_rest_{100};  // between two questions
    instant map_due_at_ = never;                   // though nothing shows that it is wrong
    std::size_t next_asked_ = 0;                   // so that all are asked in turn
    std::size_t next_dialled_ = 0;                 // likewise
    failure why_no_map_{errc::unreachable, ""};

    std::map<std::string, channel> channels_;
    std::deque<std::string> idle_channels_;                // not wanted, those first that were so first
    std::vector<std::unique_ptr<channel_command>> ended_;  // no channel's any more, and perhaps still under way
    bool closed_ = false;
};

}  // namespace holdfast::redis
