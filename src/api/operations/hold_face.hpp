// What is behind one or several leases: the hold in the engine, and what any thread may read of it without entering the
// serial section. All leases of one hold share it: an owner that re-entered has several.
//
// The leases keep the core alive, the face does not: the engine keeps the face until the hold is released, and the last
// lease waits for that.
//
// A local grant of a kept lock (kept_lock.hpp) has a face of its own, which is derived from this one.
#pragma once

#include "api/runtime/core.hpp"

#include <holdfast/lease.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace holdfast::api {

class local_face;

class hold_face : public engine::hold_listener {
public:
    explicit hold_face(core& where) : core_(where) {}
    virtual ~hold_face() { delete lost_.load(std::memory_order_acquire); }
    hold_face(const hold_face&) = delete;
    hold_face& operator=(const hold_face&) = delete;

    // Inside the section. The face of a hold that has one already is shared, otherwise `fresh` becomes its face.
    static std::shared_ptr<hold_face> of(engine::hold& held, std::shared_ptr<hold_face> fresh);

    core& where() const noexcept { return core_; }
    // Null after the hold was released. Inside the section only.
    engine::hold* held() const noexcept { return hold_; }
    // Null: not of a local grant.
    virtual local_face* local() noexcept { return nullptr; }
    virtual std::uint64_t token() noexcept { return token_.load(std::memory_order_relaxed); }
    engine::lock_kind kind() const noexcept { return kind_; }
    virtual std::string id() const { return id_.text(core_.engine().id(), mark_); }
    const engine::lock_keys& keys() const noexcept { return *keys_; }
    virtual instant valid_until() const noexcept { return valid_until_.load(std::memory_order_relaxed); }
    bool is_lost() const noexcept { return is_lost_.load(std::memory_order_relaxed); }
    // Once it is lost: errc::not_held or errc::held_by_other if a server said so, otherwise errc::lost.
    errc why_lost() const noexcept { return why_lost_.load(std::memory_order_relaxed); }
    // Fires when it is lost, or has fired if it was.
    std::stop_token lost() const;

protected:
    // Of a local grant.
    hold_face(core& where, engine::lock_kind kind, std::shared_ptr<const engine::lock_keys> keys)
        : core_(where), kind_(kind), keys_(std::move(keys)) {}

    void on_validity(instant until) override { valid_until_.store(until, std::memory_order_relaxed); }
    void on_token(engine::fencing_token token) override { token_.store(token, std::memory_order_relaxed); }
    void on_lost(errc why) override;
    void on_gone() override { hold_ = nullptr; }

private:
    void fire(const std::stop_source& source) const;

    core& core_;
    engine::hold* hold_ = nullptr;
    wire::hold_id id_;
    wire::mark mark_ = wire::mark::none;  // as the first node that votes for it knows the id
    engine::lock_kind kind_ = engine::lock_kind::mutex;
    std::atomic<bool> is_lost_ = false;
    std::atomic<errc> why_lost_ = errc::lost;
    std::shared_ptr<const engine::lock_keys> keys_;
    std::atomic<std::uint64_t> token_ = 0;
    std::atomic<instant> valid_until_{};
    mutable std::atomic<std::stop_source*> lost_ = nullptr;  // made when it is asked for, which few callers do
};

// Makes leases. The public class has no public constructor for it.
struct lease_access {
    static lease make(std::shared_ptr<hold_face> held, mode kind) noexcept { return lease(std::move(held), kind); }
    // As their destructors would; those of plain mutexes on one server in one call.
    static void release_together(std::span<lease> leases) noexcept;
    static errc why_lost(const lease& one) noexcept { return one.face_->why_lost(); }
    // Also of one that is lost, whose validity() is zero.
    static instant valid_until(const lease& one) noexcept { return one.face_->valid_until(); }
};

}  // namespace holdfast::api
