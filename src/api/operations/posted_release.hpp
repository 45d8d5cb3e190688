// A release that nobody waits for: what the end of a scope and unlock() do.
//
// Where the link is up and has room its bytes are with the kernel when start() returns, and its answer is read by
// whoever drives the loop next. So leaving costs no round trip. What the same client asks afterwards goes out behind
// it.
//
// Each owns itself from start() until a majority has answered, or for as long as a release would have waited. The core
// counts them, and does not go before they have ended.
#pragma once

#include "api/locks/hold_face.hpp"
#include "api/operations/operation.hpp"
#include "api/runtime/thread_owner.hpp"

#include <memory>

namespace holdfast::api {

class posted_release final : private serial_task, private engine::hold_completion {
public:
    // The caller keeps the core until start() has returned; from then on the core waits for the release.

    // Of a lease. False: there is no memory, and nothing was done.
    static bool start(std::shared_ptr<hold_face> target, engine::access level) noexcept;
    // Of what an owner has locked. If it has, `locked` goes down by one.
    static bool start(core& where, hold_operation::owned_hold target, engine::access level, lock_count locked) noexcept;

    static void* operator new(std::size_t);
    static void operator delete(void* room) noexcept;

private:
    posted_release(core& where, engine::access level) : core_(where), level_(level) {}
    static posted_release* make(core& where, engine::access level) noexcept;
    void begin() noexcept;

    void run() override;
    void left_behind(std::size_t, std::size_t) override {}
    void answered(const std::optional<engine::refusal>&) override { end(); }
    void end();

    core& core_;
    const engine::access level_;
    std::shared_ptr<hold_face> face_;
    hold_operation::owned_hold owned_{};
    lock_count locked_;
};

}  // namespace holdfast::api
