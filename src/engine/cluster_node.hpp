// A whole Cluster as one of the nodes that vote.
//
// Stands between the node_input, which knows locks, and the router, which knows slots: every lock has the slot of its
// key, so an event of slots is an event of the locks that are there. It also remembers which primaries are believed: a
// replica that took over may lack what the old primary had granted.
//
// Sans-I/O. Lives in the client's serial section.
//
// Invariants:
//  (1) A primary that restarted, or that the last map named as something else, counts as just started: nothing is asked
//      for there for the time of mistrust. One that was known as a primary without slots has lost nothing.
//  (2) The driver calls router().on_timer() after every event of a link, as the router demands.
#pragma once

#include "base/assert.hpp"
#include "engine/engine.hpp"
#include "redis/cluster/cluster_router.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace holdfast::engine {

// The owner of a cluster_node: gives it links and the time, and may observe it.
class cluster_host : public redis::link_maker {
public:
    virtual instant now() const = 0;
    virtual void on_member_up(const redis::server_address& /*which*/, const redis::server_facts& /*facts*/) {}
    virtual void on_member_down(const failure& /*why*/) {}
    // A member does not let this client listen, so waiters poll.
    virtual void on_wakes_refused(const failure& /*why*/) {}
    // Commands for keys in these slots can be sent, perhaps to another than before.
    virtual void on_slots_up(const redis::slot_set& /*which*/, instant /*now*/) {}
    // There is another map. Nothing is to be sent now.
    virtual void on_map() {}
    // As outbox::confirm(), at the member that owns the lock's slot; null: no owner is known. A host of a node that
    // asks for replicas implements it.
    virtual void confirm(redis::command&, const redis::server_address* /*at*/, redis::acknowledgement /*wanted*/) {
        HOLDFAST_ASSERT(false);
    }
    // True: it was such a question, and will never be answered.
    virtual bool withdraw_confirmation(redis::command& /*request*/) { return false; }

protected:
    ~cluster_host() = default;
};

class cluster_node final : public outbox, private redis::router_listener {
public:
    // Nothing is believed of a primary that was started, or became one, less than `mistrusted_for` ago; zero: all are.
    cluster_node(const redis::server_settings& cluster, cluster_host& host, milliseconds mistrusted_for,
                 std::uint64_t jitter_seed);

    // Before anything else: whom events are for.
    void attach(node_input& mine) noexcept { input_ = &mine; }
    redis::cluster_router& router() noexcept { return router_; }
    const redis::cluster_router& router() const noexcept { return router_; }

    void submit(redis::command& request) override { router_.submit(request, host_.now()); }
    bool withdraw(redis::command& request) override {
        return host_.withdraw_confirmation(request) || router_.withdraw(request);
    }
    void distrust(const failure& /*why*/) override {}  // the router has seen that answer before us
    void subscribe(const std::string& channel) override;
    bool hears(const std::string& channel) const override { return router_.hears(channel); }
    woken_by wakes(const std::string& channel) const override;
    void unsubscribe(const std::string& channel) override {
        refused_.erase(channel);
        router_.unsubscribe(channel, host_.now());
    }
    bool link_is_up(const lock_keys& lock) const override { return router_.is_up(slot_of(lock)); }
    failure why_not_up(const lock_keys& lock) const override { return router_.why_not_up(slot_of(lock)); }
    void want_link(const lock_keys& lock) override { router_.want_link(slot_of(lock), host_.now()); }
    instant trusted_from(const lock_keys& lock) const override;
    void confirm(redis::command& request, const lock_keys& lock, redis::acknowledgement wanted) override;

private:
    static redis::hash_slot slot_of(const lock_keys& lock) { return redis::slot_of(lock.lock()); }

    struct primary {
        std::uint64_t link = 0;   // the last one; 0: none yet
        std::string run_id = {};  // at that link
        instant trusted_from{};
    };

    void on_slots_up(const redis::slot_set& which, const redis::member_link& at, instant now) override;
    void on_slots_down(const redis::slot_set& which, const failure& why, instant now) override;
    void on_map(const redis::slot_map& fresh, instant now) override;
    void on_push(const redis::reply_view& message, instant now) override { input_->on_push(message, now); }
    void on_channel_refused(const std::string& channel, const failure& why, instant now) override;

    void get_to_know(primary& it, const redis::server_facts& facts, instant now) const;

    cluster_host& host_;
    const milliseconds mistrusted_for_;
    const redis::wake_choice wake_;
    node_input* input_ = nullptr;
    std::map<redis::server_address, primary> primaries_;  // those of the present map
    bool has_map_ = false;
    std::set<std::string> refused_;  // channels that a member does not let us listen to
    redis::cluster_router router_;
};

}  // namespace holdfast::engine
