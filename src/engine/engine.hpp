// The engine: takes requests of callers and events of nodes, each with `now`, and has effects carried out.
//
// Sans-I/O: no socket, no thread, no clock, no random device. Lives in the client's serial section.
//
// A single server is a quorum of one. All nodes are asked at the same time, by one node agent each; a lock is held
// while a majority of the node holds are, until the majority-th longest of their validities ends. This class knows
// owners and levels, and runs the loop of effects.hpp; the work is done by
//   node/          one hold at one node: asking, confirming, renewing, changing, releasing, raising
//   quorum/        what the nodes' results add up to: acquisitions, holding
#pragma once

#include "engine/node/lock_watch.hpp"
#include "engine/quorum/acquisitions.hpp"

#include <boost/functional/hash.hpp>

#include <unordered_map>

namespace holdfast::engine {

// A step in the life of a hold.
enum class life_step : std::uint8_t { asked, acquired, handed_over, upgraded, refused, renewed, lost, released };

// Hears what happens, in the serial section: for counting and logging, not for acting.
class observer {
public:
    // Beside the others, for those who tell locks apart. `took`: how long the wait that has ended was, or the hold. An
    // upgrade is asked for, and is upgraded or refused, while the hold goes on.
    virtual void on_step(const hold& /*of*/, life_step /*what*/, std::chrono::nanoseconds /*took*/) {}
    virtual void on_acquired(std::chrono::nanoseconds waited, how granted_how) = 0;
    virtual void on_reentered() = 0;
    virtual void on_refused() = 0;
    virtual void on_released(std::chrono::nanoseconds held) = 0;
    virtual void on_renewed() = 0;
    virtual void on_renewal_failed(const failure& why) = 0;
    virtual void on_lost(const std::string& lock, errc why) = 0;
    // The number of nodes that back a hold changed; the hold goes on.
    virtual void on_support(const std::string& lock, support_now what, support_count count) = 0;

protected:
    ~observer() = default;
};

// What a node tells when the link to it comes up.
struct node_facts {
    std::optional<std::chrono::microseconds> clock = {};  // since 1970
};

class engine;

// Where the layer below tells what happens to one node.
class node_input {
public:
    node_input(engine& whole, std::size_t number) : whole_(whole), number_(number) {}

    void on_link_up(const node_facts& facts, const lock_set& which, instant now);
    void on_link_down(const lock_set& which, instant now);
    // Locks may have other owners now: some to whom nothing was ever sent.
    void on_owners_changed(instant now);
    // Nobody can be woken: every waiter is refused for that reason.
    void on_subscription_refused(const failure& why, const lock_set& which, instant now);
    // Waiters of these locks are woken in another way from now on, and messages may be lost: they poll.
    void on_wakes_changed(const lock_set& which, instant now);
    void on_push(const redis::reply_view& message, instant now);

private:
    node_agent& agent() const noexcept;

    engine& whole_;
    const std::size_t number_;
};

class engine final : private agenda {
public:
    engine(engine_settings settings, const std::vector<node_link>& nodes, random_source& random, observer& observing);
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    const client_id& id() const noexcept { return client_; }

    // --- requests
    // Re-enters if terms.owner holds the lock already, or upgrades what it reads. The completion may be called before
    // this returns.
    void acquire(acquire_completion& request, acquire_terms terms, instant now);
    // Ends a pending acquisition with `why`, and releases what nodes may have granted. No effect if it has ended.
    void cancel(acquire_completion& request, errc why, instant now);
    // A pending acquisition may wait until then, if that is later.
    void extend(acquire_completion& request, instant deadline, instant now);
    // Has a hold that reads write as well; the read hold stays, whatever comes of it.
    void upgrade(hold& held, acquire_completion& request, patience limit, instant now);
    // One level of it; there must be one. The request (may be null) is answered at `answer_by` at the latest; the
    // release itself goes on. When the last exclusive level goes and a shared one stays, it is a downgrade.
    void release(hold& held, access level, hold_completion* request, instant answer_by, instant now);
    // Tries and releases between these two go out as one call where that can be: of a few plain mutexes on one server.
    // The tries then succeed or fail together. Completions are called when all have been asked for.
    void begin_together();
    void end_together(instant now);
    // An exclusive level becomes a shared one.
    void downgrade(hold& held, hold_completion& request, instant answer_by, instant now);
    // Makes the lease full again now.
    void renew(hold& held, hold_completion& request, instant now);
    // Asks for more numbers, of a hold that is kept; its listener is told. No effect while a renewal is under way.
    void want_numbers(hold& held, instant now);
    // Watches a mutex until unwatch(), at the only node there is.
    lock_watch& watch(std::shared_ptr<const lock_keys> keys, std::shared_ptr<watch_listener> listener, instant now);
    // The same at each node; the listener is told what a majority has. unwatch() every one of them.
    std::vector<lock_watch*> watch_all(std::shared_ptr<const lock_keys> keys, std::shared_ptr<watch_listener> listener,
                                       instant now);
    // Its listener hears nothing more, and the reference is void.
    void unwatch(lock_watch& watched, instant now);
    // Hears recalls of that lock from now on, even if nobody ever waits for it.
    void keep_listening(const lock_keys& keys, instant now);
    // The owner will never release: what it holds is renewed no longer, told as lost, and forgotten.
    void abandon(owner_id owner, instant now);
    // The same of one hold.
    void abandon(hold& held, instant now);

    // --- questions
    // The hold that this owner has on that lock, lost or not; null if none.
    hold* find(owner_id owner, const lock_keys& keys);
    // Not lost, and its validity has not run out.
    static bool is_held(const hold& h, instant now) noexcept { return h.phase == hold_phase::held && !h.ran_out(now); }
    // Which nodes do not vote about that lock yet, because they may have forgotten holds that are still believed in.
    recovery recovery_of(const lock_keys& lock, instant now) const { return nodes_.recovery_of(lock, now); }
    std::size_t holds() const noexcept { return holds_.size(); }

    // --- events
    node_input& node(std::size_t number) noexcept { return inputs_[number]; }
    void on_timer(instant now);
    instant deadline() const noexcept;

private:
    friend class node_input;

    // The loop at the edge.
    void run(instant now) override;
    void take_event(const node_event& event, instant now);
    bool acquires(const node_event& event, hold& h, instant now);
    void on_refused(const node_event& event, hold& h, instant now);
    void settle(hold& h);
    void mark_links_changed(const lock_set& which);

    void begin(acquire_completion& request, const acquire_terms& terms, instant now);
    void reenter(hold& mine, acquire_completion& request, const acquire_terms& terms, instant now);
    void reenter_exclusive(hold& mine, acquire_completion& request, patience limit, instant now);
    void reentered(hold& h, acquire_completion& request, instant now);
    void refuse(acquire_completion& request, errc code, std::string detail = {});
    bool reads_a_stripe(const acquire_terms& terms);
    bool is_too_deep(const hold& h) const noexcept { return h.exclusive + h.shared >= settings_.max_depth; }
    void own(hold& h);
    void disown(const hold& h);

    const engine_settings settings_;
    observer& observer_;
    const client_id client_;
    common_clock clock_;
    hold_store holds_;
    node_set nodes_;  // goes before the node holds that it knows
    holding held_;
    acquisitions acquisitions_;
    std::vector<node_input> inputs_;
    using owned_lock = std::pair<owner_id, std::string>;
    std::unordered_map<owned_lock, hold*, boost::hash<owned_lock>> owned_;
    bool running_ = false;
    bool together_ = false;
};

}  // namespace holdfast::engine
