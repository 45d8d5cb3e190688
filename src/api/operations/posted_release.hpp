// A release without a waiting caller: what unlock() and the end of a scope do.
//
// If the link is up and the socket has room, the kernel has the bytes when start() returns, and the release costs the
// caller no round trip. Later requests of the same client are sent behind it.
//
// Each object owns itself from start() until a majority has answered, or for as long as a blocking release would wait.
// The core counts posted releases and is not destroyed before they have ended.
#pragma once

#include "api/operations/hold_face.hpp"
#include "api/operations/operation.hpp"
#include "api/runtime/thread_owner.hpp"
#include "base/recycled.hpp"

#include <memory>
#include <vector>

namespace holdfast::api {

class posted_release final : public recycled_object<posted_release>,
                             private serial_task,
                             private engine::hold_completion {
public:
    // The caller keeps the core alive until start() returns. From then on the core waits for the release.

    // Releases one level of a lease. Returns false, and does nothing, without memory.
    static bool start(std::shared_ptr<hold_face> target, engine::access level) noexcept;
    // Releases one exclusive level of each of these leases of one client, in one visit to the serial section.
    static void start_together(const std::vector<std::shared_ptr<hold_face>>& targets);
    // Releases one level of an owner's hold. Decrements `locked` if the owner has that level.
    static bool start(core& where, hold_operation::owned_hold target, engine::access level, lock_count locked) noexcept;

private:
    class group;

    posted_release(core& where, engine::access level) : core_(where), level_(level) {}
    static posted_release* make(core& where, engine::access level) noexcept;
    void begin() noexcept;

    void run() override;
    void left_behind(std::size_t, std::size_t) override {}
    void answered(const std::optional<engine::refusal>&) override { end(); }
    void end() {
        const std::unique_ptr<posted_release> self(this);
        core_.posted_release_has_ended();
    }

    core& core_;
    const engine::access level_;
    std::shared_ptr<hold_face> face_;
    hold_operation::owned_hold owned_{};
    lock_count locked_;
};

}  // namespace holdfast::api
