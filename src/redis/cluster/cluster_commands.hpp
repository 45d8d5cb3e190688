// Commands on their way to the owners of their keys: where each goes, what waits, and what a refusal means for it.
//
//     submit --> the owner's link is up? --> its session --refused--> followed at once, or after a rest
//                   | no map, no link, slot rests                        |
//                   v                                                    |
//                 queue_  <----------------------------------------------+
//
// Invariants:
//  (1) A command is in one container: queue_, asked_ or one session, or in none. An abandoned one is never sent again.
//  (2) ASK is followed once, by the command that it answered, and while it is fresh. A one-key script that is sent to
//      the target by habit would run beside the key that is still at the source, or is there again.
//  (3) Commands of several keys keep their order within a slot while it rests, and what is sent again goes before what
//      is new. Commands of one key, and renewals, overtake them.
#pragma once

#include "redis/cluster/cluster_channels.hpp"
#include "redis/session/command_queue.hpp"

#include <deque>
#include <map>

namespace holdfast::redis {

class cluster_commands {
public:
    cluster_commands(const server_settings& cluster, const std::optional<slot_map>& map, cluster_links& links,
                     map_watch& watch, slot_rests& rests, cluster_channels& channels, cluster_effects& effects);

    void submit(command& request, instant now);
    bool withdraw(command& request);
    // True: the command is not its owner's yet.
    bool refused(cluster_link& by, command& request, const reply_view& refusal, instant now);

    // The link's ASK commands go there, if it serves.
    void on_link_up(cluster_link& which, instant now);
    // A link or an attempt ended with `why` and had not written these.
    void on_stranded(cluster_link& which, const std::deque<command*>& unwritten, const failure& why, instant now);
    // Slots have other owners: commands that follow an ASK of the old owner go to the new one.
    void on_owners_changed(const slot_set& moved, instant now);
    // Connects to the present owner, or asks who that is.
    void want_link(hash_slot slot, instant now);
    // The same for everything that waits.
    void want_links(instant now) {
        for (const command* request : queue_) want_target(*request, now);
    }

    // Sends everything that can go, in order.
    void flush(instant now);
    // Only when a link has come up, a rest is over, a slot has another owner or something was put back: not for every
    // answer of the others while one primary is gone.
    void flush_if_due(instant now) {
        if (flush_due_) flush(now);
    }
    void make_flush_due() noexcept { flush_due_ = true; }
    // Ends the commands whose deadline has come.
    void fail_due(instant now);
    void fail_all(const failure& why);
    // Before the first map: ends those that do not wait for it, or all if `why` is final.
    void fail_impatient(const failure& why);

    // Commands wait for this link alone.
    bool needs(const cluster_link& which) const { return asked_.contains(&which); }
    instant deadline() const noexcept;
    // Why nothing for this slot can be sent now, as far as known.
    failure why_not_up(hash_slot slot) const;

private:
    bool must_queue(const command& request) const {
        return !routing::passes_others(request) && rests_.has(slot_of(request.first_key()));
    }
    cluster_link* target(const command& request) const;
    bool hand_over(command& request, instant now);
    void put_back(command& request, instant now);
    void want_target(const command& request, instant now);
    void send_again(command& request, failure why, instant now);
    void rest(command& request, failure why, instant now);
    void stop_half_way(command& request, failure why, instant now);
    void ask_there(cluster_link& by, command& request, const redirect& meant, instant now);
    void send_asking(cluster_link& there, command& request, instant now);
    std::deque<command*> take_asked(cluster_link& from);

    const server_settings& cluster_;
    const std::optional<slot_map>& map_;
    cluster_links& links_;
    map_watch& watch_;
    slot_rests& rests_;
    cluster_channels& channels_;
    cluster_effects& effects_;
    command_queue queue_;
    std::map<const cluster_link*, command_queue> asked_;  // to be sent with ASKING when that link is up
    bool flush_due_ = false;
};

}  // namespace holdfast::redis
