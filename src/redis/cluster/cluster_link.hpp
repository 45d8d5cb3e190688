// The link to one member of a Cluster: its session, and what the router's parts remember of it.
//
// Events of the session go to link_events with the link they came from.
#pragma once

#include "redis/session/session.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

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
    // Scripts wake a listener by SPUBLISH. Where that would crash the server nobody listens, and waiters poll.
    bool may_be_listened_to() const noexcept { return session_->facts().in_a_shard; }
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

}  // namespace holdfast::redis
