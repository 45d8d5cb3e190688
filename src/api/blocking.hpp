// Operations that make their thread wait: each enters the section, then drives or follows the loop until it
// is answered.
#pragma once

#include "api/core.hpp"

#include <atomic>
#include <optional>
#include <stop_token>

namespace holdfast::api {

// Acquires; afterwards held() is the hold, or why() says why not.
class blocking_acquire final : private serial_task, private engine::acquire_request {
public:
    // Told inside the section of a hold that was got, before anything can happen to it.
    using attach = void (*)(void* context, engine::hold& held);

    blocking_acquire(core& where, engine::acquire_terms terms) : core_(where), terms_(std::move(terms)) {}

    void wait(std::stop_token stop, attach attach_lease, void* context);

    bool acquired() const noexcept { return !why_; }
    const engine::refusal& why() const { return *why_; }

private:
    // Ends the acquisition from another thread. A part of the operation, which outlives it: see wait().
    class canceller final : public serial_task {
    public:
        explicit canceller(blocking_acquire& owner) : owner_(owner) {}
        void run() override;
        loop::wait done;
        std::atomic<bool> entered = false;

    private:
        blocking_acquire& owner_;
    };

    void run() override;
    void acquired(engine::hold& held) override;
    void refused(const engine::refusal& why) override;

    core& core_;
    engine::acquire_terms terms_;
    attach attach_ = nullptr;
    void* context_ = nullptr;
    loop::wait answered_;
    std::optional<engine::refusal> why_;
};

// Releases or renews.
class blocking_hold_request final : private serial_task, private engine::hold_request {
public:
    enum class what { release, renew };
    // The hold is looked up inside the section.
    using find_hold = engine::hold* (*)(core& where, void* context);

    blocking_hold_request(core& where, what kind, find_hold find, void* context)
        : core_(where), kind_(kind), find_(find), context_(context) {}

    // Success, or why not.
    std::optional<engine::refusal> wait();

private:
    void run() override;
    void answered(const std::optional<engine::refusal>& why_not) override;

    core& core_;
    what kind_;
    find_hold find_;
    void* context_;
    loop::wait answered_;
    std::optional<engine::refusal> why_not_;
};

}  // namespace holdfast::api
