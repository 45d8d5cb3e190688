#include "wire/kind.hpp"

#include "base/assert.hpp"
#include "wire/mutex/mutex_kind.hpp"
#include "wire/rw/rw_kind.hpp"

#include <array>

namespace holdfast::wire {
namespace {

constexpr mutex_kind the_mutex;
constexpr rw_kind the_rw;
constexpr std::array<const kind*, 2> kinds{&the_mutex, &the_rw};
static_assert(static_cast<std::size_t>(lock_kind::mutex) == 0 && static_cast<std::size_t>(lock_kind::read_write) == 1);

}  // namespace

const kind& kind_of(lock_kind which) noexcept {
    return *kinds[static_cast<std::size_t>(which)];
}

std::span<const kind* const> all_kinds() noexcept {
    return kinds;
}

void kind::write_release_alone(redis::command&, const lock_keys&, const release_alone_request&) const {
    HOLDFAST_ASSERT(can_release_alone());
}

void kind::write_renew_alone(redis::command&, const lock_keys&, const renew_alone_request&) const {
    HOLDFAST_ASSERT(can_renew_alone());
}

void kind::write_cancel(redis::command&, const lock_terms&, const cancel_request&) const {
    HOLDFAST_ASSERT(has_shared_mode());
}

void write(redis::command& out, const lock_terms& lock, const acquire_request& request) {
    kind_of(lock.kind).write_acquire(out, lock, request);
}

void write(redis::command& out, const lock_terms& lock, const release_request& request) {
    kind_of(lock.kind).write_release(out, lock, request);
}

void write(redis::command& out, const lock_terms& lock, const renew_request& request) {
    kind_of(lock.kind).write_renew(out, lock, request);
}

void write(redis::command& out, const lock_terms& lock, const release_alone_request& request) {
    kind_of(lock.kind).write_release_alone(out, lock.keys, request);
}

void write(redis::command& out, const lock_terms& lock, const renew_alone_request& request) {
    kind_of(lock.kind).write_renew_alone(out, lock.keys, request);
}

void write(redis::command& out, const lock_terms& lock, const cancel_request& request) {
    kind_of(lock.kind).write_cancel(out, lock, request);
}

void write(redis::command& out, const lock_terms& lock, const raise_request& request) {
    kind_of(lock.kind).write_raise(out, lock, request);
}

void write(redis::command& out, const lock_terms& lock, const confirm_request& request) {
    kind_of(lock.kind).write_confirm(out, lock, request);
}

}  // namespace holdfast::wire
