// What differs between kinds of lock. Each kind has a folder here: its scripts, and one class of this interface.
//
// A new kind needs a folder, a value of lock_kind and its object in kind_of(). Nothing else in this layer and in
// the command asks for the kind of a lock.
#pragma once

#include "base/assert.hpp"
#include "wire/look.hpp"
#include "wire/requests.hpp"

#include <array>

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

    // Each writes the call of the script that carries out the request.
    virtual void write(redis::command& out, const lock_terms& lock, const acquire_request& request) const = 0;
    virtual void write(redis::command& out, const lock_terms& lock, const release_request& request) const = 0;
    virtual void write(redis::command& out, const lock_terms& lock, const renew_request& request) const = 0;
    virtual void write(redis::command& out, const lock_terms& lock, const confirm_request& request) const = 0;
    // For the kinds that know them.
    virtual void write(redis::command&, const lock_terms&, const renew_block_request&) const { does_not_know(); }
    virtual void write(redis::command&, const lock_terms&, const raise_request&) const { does_not_know(); }
    virtual void write(redis::command&, const lock_terms&, const release_alone_request&) const { does_not_know(); }
    virtual void write(redis::command&, const lock_terms&, const renew_alone_request&) const { does_not_know(); }
    virtual void write(redis::command&, const lock_terms&, const cancel_request&) const { does_not_know(); }

    // For tools: what one hold still has. The server answers WRONGTYPE if the key belongs to another kind. It needs no
    // right that the lock's own scripts do not need.
    virtual void write_standing(redis::command& out, const lock_keys& keys, std::string_view id) const = 0;
    virtual std::optional<shape> read_standing(const redis::reply_view& reply, std::string_view id) const = 0;

    // For tools: adds the holders to `lock`. False, with nothing added, if the key does not have this kind's form; then
    // it may say in `lock` what the key looks like.
    virtual bool read_holders(const stored_lock& stored, look_answer& lock) const = 0;

protected:
    ~kind() = default;

private:
    static void does_not_know() { HOLDFAST_ASSERT(false && "the kind knows this request"); }
};

// Each is defined in the folder of its kind.
extern const kind& the_mutex;
extern const kind& the_rw;
extern const kind& the_semaphore;

// In the order of lock_kind.
inline std::array<const kind*, 3> all_kinds() noexcept {
    return {&the_mutex, &the_rw, &the_semaphore};
}

inline const kind& kind_of(lock_kind which) noexcept {
    return *all_kinds()[static_cast<std::size_t>(which)];
}

template <class Request>
void write(redis::command& out, const lock_terms& lock, const Request& request) {
    kind_of(lock.kind).write(out, lock, request);
}

}  // namespace holdfast::wire
