// A script call under way and the ballot it is for. The ballot may be gone when the answer comes.
#pragma once

#include "engine/ballot.hpp"
#include "redis/command.hpp"

namespace holdfast::engine {

class voter;

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
    };

    explicit call(voter& owner) : owner_(owner) {}

    // Calls are used again and again, because their buffers are warm.
    void begin(purpose what, ballot& subject) noexcept {
        what_ = what;
        subject_ = &subject;
    }

    purpose what() const noexcept { return what_; }
    fencing_token proposed() const noexcept { return proposed_; }
    void remember_proposal(fencing_token token) noexcept { proposed_ = token; }

    void on_reply(const redis::reply_view& reply, instant now) override;
    void on_failure(const failure& why, instant now) override;

    // The ballot ended: the answer will be thrown away. What undoes this call may already be under way, so it
    // must not be sent again behind that.
    void orphan() noexcept {
        subject_ = nullptr;
        abandon();
    }

private:
    void leave(const std::unique_ptr<ballot::errands_state>& errands, call* ballot::errands_state::*slot) noexcept;

    voter& owner_;
    purpose what_ = purpose::acquire;
    fencing_token proposed_ = 0;
    ballot* subject_ = nullptr;
};

}  // namespace holdfast::engine
