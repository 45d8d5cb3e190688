// What the engine asks of the layer below, for one node, and which locks that layer's events are about.
//
// A node may be a whole Cluster. Its links come and go one by one, so every lock has a way of its own: an event is
// about some locks, and whether the node can be reached, or is to be believed, is a question about one of them. To a
// single server all locks are the same.
#pragma once

#include "base/clock.hpp"
#include "base/errc_table.hpp"
#include "redis/session/command.hpp"
#include "wire/keys.hpp"

namespace holdfast::engine {

using wire::lock_keys;

// Which locks an event is about.
class lock_set {
public:
    virtual bool has(const lock_keys& lock) const noexcept = 0;

protected:
    ~lock_set() = default;
};

inline const lock_set& all_locks() noexcept {
    static constexpr struct final : lock_set {
        bool has(const lock_keys&) const noexcept override { return true; }
    } all{};
    return all;
}

// How a waiter learns that something is for it.
enum class woken_by : std::uint8_t {
    push,  // messages come on the link of the requests, in one order with the answers
    hint,  // messages come on a link of their own, perhaps from another server: they say when to poll and prove nothing
    poll,  // nobody can tell it
};

class outbox {
public:
    virtual void submit(redis::command& request) = 0;
    // True: it will never be sent.
    virtual bool withdraw(redis::command& request) = 0;
    // An answer showed the link to be useless.
    virtual void distrust(const failure& why) = 0;
    // Before any question that names the channel.
    virtual void subscribe(const std::string& channel) = 0;
    // A subscription is confirmed where that channel's locks are: what is published there comes here.
    virtual bool hears(const std::string& channel) const = 0;
    // Of the waiters that have this channel. A change from or to `poll` is told, see node_input::on_wakes_changed().
    virtual woken_by wakes(const std::string& /*channel*/) const { return woken_by::push; }
    // Nobody waits to hear of it any more.
    virtual void unsubscribe(const std::string& channel) = 0;
    virtual bool link_is_up(const lock_keys& lock) const = 0;
    // Why it is not, as far as known.
    virtual failure why_not_up(const lock_keys& lock) const = 0;
    // Something would be asked for if there were a link. A single server is dialled in any case.
    virtual void want_link(const lock_keys& /*lock*/) {}
    // Nothing is asked for before this instant: the server may have forgotten holds that are still valid for clients.
    virtual instant trusted_from(const lock_keys& lock) const = 0;
    // Asks how many replicas have what the lock's server has done so far; answered as by redis::ack_queue, never from
    // within this call. Taken back by withdraw(). `request` is wire::confirm_request, for a node whose locks may be
    // with another server by now.
    virtual void confirm(redis::command& request, const lock_keys& lock, redis::acknowledgement wanted) = 0;

protected:
    ~outbox() = default;
};

}  // namespace holdfast::engine
