// The mutex: one holder, whose hold id is the value of the lock's key. The fence holds the token of the last grant.
#include "wire/hold_id.hpp"
#include "wire/kind.hpp"
#include "wire/payload.hpp"

#include <algorithm>

namespace holdfast::wire {
namespace {

using side = lock_keys::side;

payload mutex_payload(const lock_keys& keys, bool with_notes = false) {
    return {keys,
            {side::queue, side::waiters, side::fence},
            with_notes ? payload::gap::and_notes : payload::gap::of_raw_locks};
}

class mutex_kind final : public kind {
public:
    using kind::write;

    bool has_shared_mode() const noexcept override { return false; }
    bool can_release_alone() const noexcept override { return true; }
    bool can_renew_alone() const noexcept override { return false; }
    bool can_end_foreign_holds() const noexcept override { return true; }

    void write(redis::command& out, const lock_terms& lock, const acquire_request& request) const override {
        static const script& source = find("mutex/acquire");
        payload call = mutex_payload(lock.keys, names_notes(request));
        call.text(request.id)
            .time(request.lease)
            .token(request.token_floor)
            .time(lock.fence_retention)
            .text(request.channel)
            .text(request.ticket.empty() ? "0" : request.ticket)
            .time(request.poll_interval)
            .time(request.queue_retention)
            .token(lock.proposal)
            .token(std::max(request.gives_way, request.ceiling));
        add_note(call, request);
        call.write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const release_request& request) const override {
        static const script& source = find("mutex/release");
        payload call = mutex_payload(lock.keys, is_noted(request.id));
        call.text(request.id).token(request.token).time(lock.fence_retention).token(lock.proposal);
        if (lock.keys.is_raw()) call.time(request.yield_after);
        call.write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const renew_request& request) const override {
        static const script& source = find("mutex/renew");
        const bool has_note = request.keeps_note && is_noted(request.id);
        payload call = has_note ? payload(lock.keys, {side::notes, side::fence}) : payload(lock.keys, {});
        call.text(request.id).time(request.lease);
        if (request.delay > milliseconds(0)) call.time(request.delay);
        call.write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const renew_block_request& request) const override {
        static const script& source = find("mutex/renew_block");
        payload call(lock.keys, {side::queue, side::fence});
        call.text(request.id).time(request.lease).token(request.ceiling).time(lock.fence_retention);
        if (request.delay > milliseconds(0)) call.time(request.delay);
        call.write(out, source);
    }

    // The fence holds the token of an unmarked grant, and the ceiling of a marked one.
    void write(redis::command& out, const lock_terms& lock, const raise_request& request) const override {
        static const script& source = find("mutex/raise");
        mutex_payload(lock.keys)
            .text(request.id)
            .token(std::max(request.token, request.ceiling))
            .token(request.to)
            .time(lock.fence_retention)
            .write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const confirm_request& request) const override {
        static const script& source = find("mutex/confirm");
        const std::uint64_t token = std::max(request.token, request.ceiling);
        if (token == 0) return payload(lock.keys, {}).text(request.id).write(out, source);
        payload(lock.keys, {side::fence}).text(request.id).token(token).write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const release_alone_request& request) const override {
        static const script& source = find("mutex/release_alone");
        payload(lock.keys, {}).text(request.id).write(out, source);
    }

    void write_standing(redis::command& out, const lock_keys& keys, std::string_view) const override {
        out.set_payload(redis::encoded_command({"GET", keys.lock()}));
    }

    std::optional<shape> read_standing(const redis::reply_view& reply, std::string_view id) const override {
        return !reply.is_null() && reply.text() == id ? shape::writing : shape::nothing;
    }

    bool read_holders(const stored_lock& stored, look_answer& lock) const override {
        if (stored.type != "string" || stored.value.size() == 0) return false;
        const std::string_view id = stored.value[0].text();
        seen_holder holder{.id = std::string(id), .is_foreign = !is_ours(id), .left = stored.key_left};
        // The fence holds the token of the last grant. Another program's hold was not granted by a script of ours.
        if (!holder.is_foreign) set_token(holder, lock.fence, lock.server_time);
        // The fence of a marked grant moves with every renewal, so it does not tell since when it is held.
        if (mark_of(id) != mark::none) holder.held.reset();
        lock.holders.push_back(std::move(holder));
        return true;
    }
};

constexpr mutex_kind mutex_object;

}  // namespace

const kind& the_mutex = mutex_object;

}  // namespace holdfast::wire
