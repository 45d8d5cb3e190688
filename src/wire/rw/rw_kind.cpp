// The read-write lock: a hash that other programs share, every hold's deadline (leases) and its grant beside it.
#include "wire/entry.hpp"
#include "wire/hold_id.hpp"
#include "wire/kind.hpp"
#include "wire/payload.hpp"

#include <algorithm>
#include <map>

namespace holdfast::wire {
namespace {

using side = lock_keys::side;
using pairs = std::map<std::string_view, std::string_view>;

// All but renew_alone and confirm begin alike.
payload rw_payload(const lock_terms& lock, std::string_view id, bool with_notes = false) {
    payload call(lock.keys, {side::queue, side::waiters, side::fence, side::leases, side::grants},
                 with_notes ? payload::gap::and_notes : payload::gap::of_raw_locks);
    call.text(id).time(lock.fence_retention).text(word_of(lock.prefer));
    return call;
}

bool starts_like_redisson(std::string_view field) {
    constexpr std::string_view hex = "0123456789abcdefABCDEF";
    for (int part = 0; part < 5; ++part) {
        const std::size_t end = field.find_first_not_of(hex);
        if (end == 0 || end == std::string_view::npos || field[end] != (part < 4 ? '-' : ':')) return false;
        field.remove_prefix(end + 1);
    }
    return !field.empty() && field.front() >= '0' && field.front() <= '9';
}

// False if the hash has a field that no read-write lock of a known form has.
bool is_of_known_form(const pairs& hash, look_answer& lock) {
    bool known = hash.contains("mode");
    for (const auto& [name, value] : hash) {
        if (name == "mode" || name == "rcount" || name == "writer" || name == "wcount" || name.starts_with("r:"))
            continue;
        known = false;
        // Redisson's fields are <client uuid>:<thread id>, and the same with :write behind it.
        if (starts_like_redisson(name)) lock.looks_like = "a Redisson lock";
    }
    return known;
}

// Collects the holders of one lock. A hold of ours lives by its own deadline, and without one it is dead. A hold of
// another program lives by the deadline `foreign`, or by the expiry of the key.
class holder_list {
public:
    holder_list(const stored_lock& stored, look_answer& lock)
        : lock_(lock), key_left_(stored.key_left), leases_(pairs_of(stored.leases)), grants_(pairs_of(stored.grants)) {}

    void add(seen_holder holder) {
        const auto same = std::ranges::find(lock_.holders, holder.id, &seen_holder::id);
        if (same != lock_.holders.end()) {
            same->mode = access::both;
            same->count += holder.count;
            return;
        }
        holder.is_foreign = !is_ours(holder.id);
        if (!add_lease(holder)) return;
        if (const auto grant = grants_.find(holder.id); !holder.is_foreign && grant != grants_.end()) {
            set_token(holder, token_of_grant(grant->second), lock_.server_time);
        }
        lock_.holders.push_back(std::move(holder));
    }

private:
    // False: its lease is over.
    bool add_lease(seen_holder& holder) const {
        const auto lease = leases_.find(holder.is_foreign ? "foreign" : std::string_view(holder.id));
        if (lease == leases_.end()) {
            holder.left = key_left_;
            return holder.is_foreign;
        }
        const auto deadline_ms = number_in<double>(lease->second);
        if (!deadline_ms) return false;
        const microseconds deadline(static_cast<std::int64_t>(*deadline_ms * 1000));
        holder.left = std::chrono::ceil<milliseconds>(deadline - lock_.server_time);
        return *holder.left > milliseconds(0);
    }

    look_answer& lock_;
    const std::optional<milliseconds> key_left_;
    const pairs leases_;
    const pairs grants_;
};

class rw_kind final : public kind {
public:
    using kind::write;

    bool has_shared_mode() const noexcept override { return true; }
    bool can_release_alone() const noexcept override { return false; }
    bool can_renew_alone() const noexcept override { return true; }
    // Only the other program knows how often it has entered.
    bool can_end_foreign_holds() const noexcept override { return false; }

    void write(redis::command& out, const lock_terms& lock, const acquire_request& request) const override {
        static const script& source = find("rw/acquire");
        payload call = rw_payload(lock, request.id, names_notes(request));
        call.text(word_of(request.wants))
            .time(request.lease)
            .token(request.token_floor)
            .text(request.channel)
            .text(request.ticket.empty() ? "0" : request.ticket)
            .time(request.poll_interval)
            .time(request.queue_retention)
            .token(request.upgrading)
            .token(lock.proposal)
            .token(request.gives_way);
        add_note(call, request);
        call.write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const release_request& request) const override {
        static const script& source = find("rw/release");
        payload call = rw_payload(lock, request.id, is_noted(request.id));
        call.token(request.token).text(word_of(request.left_over)).time(request.lease).token(lock.proposal);
        if (lock.keys.is_raw()) call.time(request.yield_after);
        call.write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const renew_request& request) const override {
        static const script& source = find("rw/renew");
        rw_payload(lock, request.id, request.keeps_note && is_noted(request.id))
            .time(request.lease)
            .token(lock.proposal)
            .write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const renew_block_request& request) const override {
        static const script& source = find("rw/renew");
        rw_payload(lock, request.id).time(request.lease).token(lock.proposal).token(request.ceiling).write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const raise_request& request) const override {
        static const script& source = find("rw/raise");
        rw_payload(lock, request.id).token(request.token).token(request.to).write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const confirm_request& request) const override {
        static const script& source = find("rw/confirm");
        if (request.ceiling == 0) return holders_payload(lock.keys, request.id).token(request.token).write(out, source);
        payload(lock.keys, {side::leases, side::grants, side::fence})
            .text(request.id)
            .token(request.token)
            .token(request.ceiling)
            .write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const renew_alone_request& request) const override {
        static const script& source = find("rw/renew_alone");
        holders_payload(lock.keys, request.id).time(request.lease).write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const cancel_request& request) const override {
        static const script& source = find("rw/cancel");
        rw_payload(lock, request.id).token(lock.proposal).write(out, source);
    }

    void write_standing(redis::command& out, const lock_keys& keys, std::string_view id) const override {
        static const script& source = find("rw/tools/standing");
        payload(keys, {side::leases}).text(id).write(out, source);
    }

    // A hold counts only while its lease runs: the scripts remove later what a dead one left in the hash.
    std::optional<shape> read_standing(const redis::reply_view& reply, std::string_view id) const override {
        if (reply.size() != 3 || reply[0].size() != 2 || reply[2].size() != 2) return std::nullopt;
        const auto deadline_ms = reply[1].is_null() ? std::nullopt : number_in<double>(reply[1].text());
        const auto now_us = reply[2][0].to_integer().value_or(0) * 1'000'000 + reply[2][1].to_integer().value_or(0);
        if (!deadline_ms || *deadline_ms * 1000 <= static_cast<double>(now_us)) return shape::nothing;
        if (reply[0][0].text() == id) return shape::writing;
        return reply[0][1].is_null() ? shape::nothing : shape::reading;
    }

    bool read_holders(const stored_lock& stored, look_answer& lock) const override {
        if (stored.type != "hash") return false;
        const pairs hash = pairs_of(stored.value);
        if (!is_of_known_form(hash, lock)) return false;
        holder_list holders(stored, lock);
        if (const auto writer = hash.find("writer"); writer != hash.end() && !writer->second.empty()) {
            const auto count = hash.find("wcount");
            holders.add({.id = std::string(writer->second),
                         .mode = access::write,
                         .count = count == hash.end() ? 1 : number_in<std::int64_t>(count->second).value_or(1)});
        }
        for (const auto& [name, value] : hash) {
            const std::int64_t count = name.starts_with("r:") ? number_in<std::int64_t>(value).value_or(0) : 0;
            if (count > 0) holders.add({.id = std::string(name.substr(2)), .mode = access::read, .count = count});
        }
        std::ranges::stable_sort(lock.holders, {}, [](const seen_holder& holder) { return holder.token.value_or(0); });
        return true;
    }
};

constexpr rw_kind rw_object;

}  // namespace

const kind& the_rw = rw_object;

}  // namespace holdfast::wire
