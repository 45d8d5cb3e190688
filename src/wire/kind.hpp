// What differs between kinds of lock. Each kind has a folder here: its scripts, and one class of this interface.
//
// A new kind needs a folder, a value of lock_kind and a row in the table of kind.cpp. Nothing else in this layer and in
// the command asks for the kind of a lock.
#pragma once

#include "wire/look.hpp"
#include "wire/requests.hpp"

#include <span>

namespace holdfast::wire {

class kind {
public:
    // Readers share it: there are holders that read, upgrades and downgrades.
    virtual bool has_shared_mode() const noexcept = 0;
    // It knows release_alone_request.
    virtual bool can_release_alone() const noexcept = 0;
    // It knows renew_alone_request.
    virtual bool can_renew_alone() const noexcept = 0;
    // release ends the hold of another program, too.
    virtual bool can_end_foreign_holds() const noexcept = 0;

    virtual void write_acquire(redis::command& out, const lock_terms& lock, const acquire_request& request) const = 0;
    virtual void write_release(redis::command& out, const lock_terms& lock, const release_request& request) const = 0;
    virtual void write_renew(redis::command& out, const lock_terms& lock, const renew_request& request) const = 0;
    virtual void write_raise(redis::command& out, const lock_terms& lock, const raise_request& request) const = 0;
    virtual void write_confirm(redis::command& out, const lock_terms& lock, const confirm_request& request) const = 0;
    // These assert that the kind knows the request.
    virtual void write_release_alone(redis::command& out, const lock_keys& keys, const release_alone_request&) const;
    virtual void write_renew_alone(redis::command& out, const lock_keys& keys, const renew_alone_request&) const;
    virtual void write_cancel(redis::command& out, const lock_terms& lock, const cancel_request&) const;

    // For tools: what one hold still has. The server answers WRONGTYPE if the key belongs to another kind. It needs no
    // right that the lock's own scripts do not need.
    virtual void write_standing(redis::command& out, const lock_keys& keys, std::string_view id) const = 0;
    virtual std::optional<shape> read_standing(const redis::reply_view& reply, std::string_view id) const = 0;

    // For tools: adds the holders to `lock`. False, with nothing added, if the key does not have this kind's form; then
    // it may say in `lock` what the key looks like.
    virtual bool read_holders(const stored_lock& stored, look_answer& lock) const = 0;

protected:
    ~kind() = default;
};

const kind& kind_of(lock_kind which) noexcept;
// In the order of lock_kind.
std::span<const kind* const> all_kinds() noexcept;

}  // namespace holdfast::wire
