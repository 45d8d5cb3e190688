// A script call under way and the hold it is for. The hold may be gone when the answer comes.
#pragma once

#include "engine/hold.hpp"
#include "redis/command.hpp"

namespace holdfast::engine {

class engine;

class call final : public redis::command {
public:
    enum class purpose : std::uint8_t { acquire, release, renew, change, cancel };

    explicit call(engine& owner) : owner_(owner) {}

    // Calls are used again and again, because their buffers are warm.
    void begin(purpose what, hold& subject) noexcept {
        what_ = what;
        subject_ = &subject;
    }

    purpose what() const noexcept { return what_; }

    void on_reply(const redis::reply_view& reply, instant now) override;
    void on_failure(const failure& why, instant now) override;

    // The hold ended: the answer will be thrown away. What undoes this call may already be under way, so it
    // must not be sent again behind that.
    void orphan() noexcept {
        subject_ = nullptr;
        abandon();
    }

private:
    engine& owner_;
    purpose what_ = purpose::acquire;
    hold* subject_ = nullptr;
};

}  // namespace holdfast::engine
