// What users of a kept lock have: a local grant, or the wish for one.
#pragma once

#include "api/operations/hold_face.hpp"
#include "engine/local/claim.hpp"

#include <memory>
#include <string>

namespace holdfast::api {

class kept_hold;
class kept_lock;
class local_face;

// Hears how a local wait ends. Told once, outside the mutex.
class local_waiter {
public:
    // Before it waits, under the mutex. True: its answer comes from a server, and somebody should drive the loop.
    virtual void will_wait(bool /*for_server*/) {}
    virtual void granted(std::shared_ptr<local_face> face) = 0;
    virtual void refused(const engine::refusal& why) = 0;

protected:
    ~local_waiter() = default;
};

// A local grant, or the wish for one: the face of its leases, and the claim that the machine knows.
class local_face final : public hold_face {
public:
    explicit local_face(const std::shared_ptr<kept_lock>& of);

    local_face* local() noexcept override { return this; }
    std::uint64_t token() noexcept override;
    std::string id() const override;
    instant valid_until() const noexcept override;

    kept_lock& lock() const noexcept { return *lock_; }
    // The hold of the client that it was granted from.
    const std::shared_ptr<kept_hold>& hold() const noexcept { return hold_; }
    std::uint64_t serial() const noexcept { return serial_; }
    void tell_lost() { hold_face::on_lost(errc::lost); }

private:
    friend class kept_lock;
    struct claim final : engine::local::claim {
        explicit claim(local_face& whole) : face(whole) {}
        local_face& face;
    };
    static local_face& of(engine::local::claim& one) noexcept { return static_cast<claim&>(one).face; }

    const std::shared_ptr<kept_lock> lock_;
    std::uint64_t serial_ = 0;
    claim claim_;
    std::shared_ptr<kept_hold> hold_;
    std::atomic<std::uint64_t> taken_token_ = 0;
    local_waiter* waiter_ = nullptr;
    std::shared_ptr<local_face> self_;    // while the machine knows the claim
    std::shared_ptr<local_face> target_;  // of an upgrade that waits
};

}  // namespace holdfast::api
