// The link to one member of a Cluster: its session, and what the router's parts remember of it. And the effects: what
// the parts want to happen after a change.
//
// Events of the session go to link_events with the link they came from. An event changes the state of the parts and
// appends effects. The router carries them out, first in first out, when the change is complete. Only what calls an
// upper layer, or ends a session, is an effect. A command that is given to a session is not: the session only queues
// it.
#pragma once

#include "redis/session/session.hpp"
#include "redis/slots/hash_slot.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace holdfast::redis {

class channel_command;
class cluster_link;

// Receives the events of all links. cluster_router implements it.
class link_events {
public:
    virtual void on_link_up(cluster_link& which, instant now) = 0;
    virtual void on_link_down(cluster_link& which, const failure& why, instant now) = 0;
    virtual void on_stranded(cluster_link& which, const std::deque<command*>& unwritten, const failure& why,
                             instant now) = 0;
    virtual void on_push(cluster_link& by, const reply_view& message, instant now) = 0;
    // As refusal_filter::takes().
    virtual bool on_refusal(cluster_link& by, command& request, const reply_view& refusal, instant now) = 0;
    virtual void on_map_answer(cluster_link& by, const reply_view& reply, instant now) = 0;
    virtual void on_channel_answer(channel_command& about, const reply_view& reply, instant now) = 0;

protected:
    ~link_events() = default;
};

// A command of the router's own, for one link. It is never sent elsewhere and reads its refusals itself.
class own_command : public command {};

class cluster_link final : public session_listener, public refusal_filter {
public:
    cluster_link(link_events& events, server_address address) : events_(events), address_(std::move(address)) {}

    const server_address& address() const noexcept { return address_; }

    // Without a session the link is down: its opening is an effect that is not carried out yet.
    void attach(redis::session& made) {
        session_ = &made;
        session_->filter_refusals(this);
    }
    redis::session& session() const noexcept { return *session_; }
    // The name of the server in messages.
    std::string display() const { return session_->settings().display(); }

    bool up() const noexcept { return session_ != nullptr && !is_dropped && session_->up(); }
    // It takes commands for the slots that the map assigns to it.
    bool serves() const noexcept { return up() && session_->facts().role != "replica"; }
    // Scripts wake a listener by SPUBLISH. Where that would crash the server nobody listens, and waiters poll. So they
    // do where the link speaks RESP2, which would have to be a second one to listen.
    bool may_be_listened_to() const noexcept { return session_->facts().in_a_shard && session_->facts().resp == 3; }
    void hurry(instant now) const {
        if (session_ != nullptr) session_->hurry(now);
    }
    bool is_waiting(const command& request) const { return session_ != nullptr && session_->is_waiting(request); }

    std::uint64_t number = 0;  // of the last time that it came up
    bool told_up = false;      // the listener knows that its slots are up
    bool is_primary = false;   // by the map; a search of the map for every link after every answer would be too slow
    bool has_failed = false;   // the last attempt or the last link ended, and none has come up since
    bool is_dropped = false;   // its session is about to be told that the link is of no more use

private:
    void on_link_up(const server_facts&, instant now) override { events_.on_link_up(*this, now); }
    void on_link_down(const failure& why, instant now) override { events_.on_link_down(*this, why, now); }
    void on_stranded(std::deque<command*> unwritten, const failure& why, instant now) override {
        events_.on_stranded(*this, unwritten, why, now);
    }
    void on_subscription_refused(const failure&, instant) override {}  // the session itself subscribes to nothing
    void on_push(const reply_view& message, instant now) override { events_.on_push(*this, message, now); }
    bool takes(command& request, const reply_view& refusal, instant now) override {
        return events_.on_refusal(*this, request, refusal, now);
    }

    link_events& events_;
    const server_address address_;
    redis::session* session_ = nullptr;
};

struct open_link {
    cluster_link* which;
};
// Owns the link: no part knows it any more.
struct close_link {
    std::unique_ptr<cluster_link> which;
};
// The session gives the link up. It connects again after a rest, or soon, or never.
struct drop_link {
    enum class next { rest, hurry, close };
    cluster_link* which;
    failure why;
    next then;
};
struct fail_command {
    command* which;
    failure why;
};
struct tell_map {};
struct tell_slots_down {
    std::unique_ptr<const slot_set> which;  // large
    failure why;
};
struct tell_slots_up {
    std::unique_ptr<const slot_set> which;
    const cluster_link* at;
};
struct tell_channel_refused {
    std::string channel;
    failure why;
};
using cluster_effect = std::variant<open_link, close_link, drop_link, fail_command, tell_map, tell_slots_down,
                                    tell_slots_up, tell_channel_refused>;

class cluster_effects {
public:
    void add(cluster_effect next) { queue_.push_back(std::move(next)); }
    // The link counts as down from now on.
    void drop(cluster_link& which, failure why, drop_link::next then) {
        which.is_dropped = true;
        add(drop_link{&which, std::move(why), then});
    }
    // The command is idle until its owner is told.
    void fail(command& which, failure why) {
        routing::set_idle(which);
        add(fail_command{&which, std::move(why)});
    }
    void fail_all(const std::deque<command*>& ended, const failure& why) {
        for (command* each : ended) fail(*each, why);
    }

    bool empty() const noexcept { return queue_.empty(); }
    cluster_effect take() {
        cluster_effect next = std::move(queue_.front());
        queue_.pop_front();
        return next;
    }

private:
    std::deque<cluster_effect> queue_;
};

}  // namespace holdfast::redis
