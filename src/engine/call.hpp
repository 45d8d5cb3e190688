// A script call under way and the node_hold it is for. The node_hold may be gone when the answer comes.
#pragma once

#include "engine/node_hold.hpp"
#include "redis/session/command.hpp"

namespace holdfast::engine {

class node_agent;

// What shows that something is held: its token, and when the request that proved it cannot have been sent yet.
struct proof {
    fencing_token token = 0;
    instant at{};
    how got = how::asked;
};

class call final : public redis::command {
public:
    enum class purpose : std::uint8_t {
        acquire,
        release,
        release_alone,  // without serving the line
        renew,
        renew_again,  // because the first answer came from where the slot is moving to
        renew_alone,  // without looking at the line
        change,
        cancel,
        raise,
        confirm_grant,
        confirm_renewal,
        confirm_raise,
    };

    explicit call(node_agent& owner) : owner_(owner) {}

    // Calls are used again and again, because their buffers are warm.
    void begin(purpose what, node_hold& subject) noexcept {
        what_ = what;
        subject_ = &subject;
    }

    purpose what() const noexcept { return what_; }
    static bool renews(purpose what) noexcept {
        return what == purpose::renew || what == purpose::renew_again || what == purpose::renew_alone;
    }
    // What is being confirmed.
    const proof& shown() const noexcept { return shown_; }
    void remember(const proof& shown) noexcept { shown_ = shown; }

    void on_reply(const redis::reply_view& reply, instant now) override;
    void on_failure(const failure& why, instant now) override;
    void on_shown(milliseconds left, instant asked_at) override;

    // The node_hold ended: the answer will be thrown away. What undoes this call may already be under way, so it
    // must not be sent again behind that.
    void orphan() noexcept {
        subject_ = nullptr;
        abandon();
    }

private:
    using slot = call* node_hold::requests_in_flight::*;
    // Where in its node_hold it is.
    slot place() const noexcept;
    // The slot is cleared first: what follows may start the next call of the same kind.
    node_hold& leave() noexcept;

    node_agent& owner_;
    purpose what_ = purpose::acquire;
    proof shown_;
    node_hold* subject_ = nullptr;
};

}  // namespace holdfast::engine
