// Watches one mutex at one node: asks who holds it, and again when the node says that this changed, when the holder's
// lease is over, when a link comes up, and from time to time.
//
// A message says only that something changed; the next answer says what. So a lost message costs a poll, and one that
// comes on another link than the answers misleads nobody.
//
// Invariants:
//  (1) One question is in flight at a time, so the answers come in the order in which the node gave them.
//  (2) No holder is told after one with a greater token, also if a server that took over knows no better. A node that
//      has forgotten the token of a holder does not change what was told of it.
//  (3) The channel is subscribed before the node is asked.
#pragma once

#include "engine/effects.hpp"
#include "engine/timer_heap.hpp"
#include "wire/mutex/watch.hpp"

namespace holdfast::engine {

class lock_watch;
class node_agent;

// Told in the serial section.
class watch_listener {
public:
    virtual void on_sight(const wire::watch_answer& seen) = 0;
    // It goes on asking. Told once, until an answer comes again.
    virtual void on_trouble(const failure& why) = 0;

protected:
    ~watch_listener() = default;
};

// A grant is one sight, however much is left of its lease.
bool is_same(const wire::watch_answer& a, const wire::watch_answer& b);

// What a listener is told: what differs from the last; or, of one node among several, each answer, and that the link is
// down: what was told need not be so any more.
enum class telling : std::uint8_t { changes, answers };

class lock_watch final : public redis::command, public timed {
public:
    lock_watch(node_agent& agent, std::shared_ptr<const lock_keys> keys, hold_id id,
               std::shared_ptr<watch_listener> listener, telling what);

    const lock_keys& keys() const noexcept { return *keys_; }
    const std::shared_ptr<watch_listener>& listener() const noexcept { return listener_; }

    // Now; or after the answer to what is in flight, which may be from before.
    void ask(instant now);
    // The listener hears nothing more.
    void stop(instant now);
    void on_link_down();
    // The node does not let us listen: it is asked more often.
    void on_subscription_refused(const failure& why, instant now);
    bool has_id(std::string_view text) const noexcept;

    void on_reply(const redis::reply_view& reply, instant now) override;
    void on_failure(const failure& why, instant now) override;

private:
    void send(bool goes_on, instant now);
    void ended(instant now);
    void tell(wire::watch_answer seen);
    void tell_trouble(const failure& why);
    bool may_have_forgotten(const wire::watch_answer& seen, instant now) const;
    bool polls();
    milliseconds next_poll(const wire::watch_answer& seen);

    node_agent& agent_;
    const std::shared_ptr<const lock_keys> keys_;
    const hold_id id_;
    std::shared_ptr<watch_listener> listener_;
    const telling telling_;
    bool in_flight_ = false;
    bool again_ = false;
    bool said_goodbye_ = false;
    bool was_told_trouble_ = false;
    bool is_deaf_ = false;                    // the subscription was refused, and none was confirmed since
    std::optional<wire::watch_answer> last_;  // that was told
    fencing_token greatest_ = 0;              // that was seen
};

}  // namespace holdfast::engine
