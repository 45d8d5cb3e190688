// The mutex: one holder, whose hold id is the value of the lock's key. The fence holds the token of the last grant.
#pragma once

#include "wire/kind.hpp"

namespace holdfast::wire {

class mutex_kind final : public kind {
public:
    bool has_shared_mode() const noexcept override { return false; }
    bool can_release_alone() const noexcept override { return true; }
    bool can_renew_alone() const noexcept override { return false; }
    bool can_end_foreign_holds() const noexcept override { return true; }

    void write_acquire(redis::command& out, const lock_terms& lock, const acquire_request& request) const override;
    void write_release(redis::command& out, const lock_terms& lock, const release_request& request) const override;
    void write_renew(redis::command& out, const lock_terms& lock, const renew_request& request) const override;
    void write_raise(redis::command& out, const lock_terms& lock, const raise_request& request) const override;
    void write_confirm(redis::command& out, const lock_terms& lock, const confirm_request& request) const override;
    void write_release_alone(redis::command& out, const lock_keys& keys, const release_alone_request&) const override;

    void write_standing(redis::command& out, const lock_keys& keys, std::string_view id) const override;
    std::optional<shape> read_standing(const redis::reply_view& reply, std::string_view id) const override;
    bool read_holders(const stored_lock& stored, look_answer& lock) const override;
};

}  // namespace holdfast::wire
