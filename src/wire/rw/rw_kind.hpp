// The read-write lock: a hash that other programs share, every hold's deadline (leases) and its grant beside it.
#pragma once

#include "wire/kind.hpp"

namespace holdfast::wire {

class rw_kind final : public kind {
public:
    bool has_shared_mode() const noexcept override { return true; }
    bool can_release_alone() const noexcept override { return false; }
    bool can_renew_alone() const noexcept override { return true; }
    // Only the other program knows how often it has entered.
    bool can_end_foreign_holds() const noexcept override { return false; }

    void write_acquire(redis::command& out, const lock_terms& lock, const acquire_request& request) const override;
    void write_release(redis::command& out, const lock_terms& lock, const release_request& request) const override;
    void write_renew(redis::command& out, const lock_terms& lock, const renew_request& request) const override;
    void write_raise(redis::command& out, const lock_terms& lock, const raise_request& request) const override;
    void write_confirm(redis::command& out, const lock_terms& lock, const confirm_request& request) const override;
    void write_renew_alone(redis::command& out, const lock_keys& keys, const renew_alone_request&) const override;
    void write_cancel(redis::command& out, const lock_terms& lock, const cancel_request&) const override;

    void write_standing(redis::command& out, const lock_keys& keys, std::string_view id) const override;
    std::optional<shape> read_standing(const redis::reply_view& reply, std::string_view id) const override;
    bool read_holders(const stored_lock& stored, look_answer& lock) const override;
};

}  // namespace holdfast::wire
