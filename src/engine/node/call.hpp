// A script call in flight, and the node hold it is for. The node hold may be gone when the answer comes.
#pragma once

#include "engine/node/node_hold.hpp"
#include "redis/session/command.hpp"

namespace holdfast::engine {

class node_agent;

// What shows that something is held: its token, and a lower bound for when the request that proved it was sent.
struct proof {
    fencing_token token = 0;
    instant at{};
    how granted_how = how::asked;
    fencing_token ceiling = 0;  // of a marked hold
};

class call final : public redis::command {
public:
    enum class purpose : std::uint8_t {
        acquire,
        release,
        release_alone,  // without serving the queue
        renew,
        renew_again,  // because the first answer came from where the slot is moving to
        renew_alone,  // without looking at the queue
        change,
        cancel,
        raise,
        confirm_grant,
        confirm_renewal,
        confirm_raise,
    };

    explicit call(node_agent& owner) : owner_(owner) {}

    // Calls are used again and again, because their buffers are warm.
    void begin(purpose what, node_hold& subject, call* node_requests::*slot) noexcept {
        what_ = what;
        subject_ = &subject;
        slot_ = slot;
        is_orphan_ = false;
        is_submitted_ = false;
    }

    purpose what() const noexcept { return what_; }
    bool renews() const noexcept {
        return what_ == purpose::renew || what_ == purpose::renew_again || what_ == purpose::renew_alone;
    }
    void submitted() noexcept { is_submitted_ = true; }
    // The server may run it. One whose answer or failure is being delivered counts, too.
    bool may_run() const noexcept { return is_submitted_ && (life() == state::written || life() == state::done); }
    bool is_orphan() const noexcept { return is_orphan_; }
    // What is being confirmed.
    const proof& shown() const noexcept { return shown_; }
    void remember(const proof& shown) noexcept { shown_ = shown; }

    // The node hold needs no answer any more. What undoes this call may already be in flight, so it must not be sent
    // again behind that.
    void orphan() noexcept {
        subject_ = nullptr;
        is_orphan_ = true;
        abandon();
    }
    // The node hold that waits for the answer; null for an orphan.
    const node_hold* subject() const noexcept { return subject_; }
    // The same, which no longer lists this call as pending; null for an orphan.
    node_hold* take_subject() noexcept;
    // Nothing of it is in flight: its agent may use it again.
    void end();

    void on_reply(const redis::reply_view& reply, instant now) override;
    void on_failure(const failure& why, instant now) override;
    void on_shown(milliseconds left, instant asked_at) override;

private:
    node_agent& owner_;
    node_hold* subject_ = nullptr;
    call* node_requests::*slot_ = nullptr;  // where the node hold lists it
    proof shown_;
    purpose what_ = purpose::acquire;
    bool is_orphan_ = false;
    bool is_submitted_ = false;
};

}  // namespace holdfast::engine
