#include "wire/look.hpp"

#include "wire/entry.hpp"
#include "wire/kind.hpp"
#include "wire/payload.hpp"

#include <algorithm>

namespace holdfast::wire {
namespace {

// A moment in the future, because the clock was set back, counts as now.
microseconds since(microseconds moment, microseconds now) {
    return std::max(microseconds(0), now - moment);
}

std::vector<seen_waiter> read_waiters(const redis::reply_view& queue, const redis::reply_view& entries,
                                      microseconds now) {
    const auto known = pairs_of(entries);
    std::vector<seen_waiter> result;
    for (auto at = queue.begin(); at != queue.end();) {
        seen_waiter waiter{.id = std::string((*at++).text())};
        if (at == queue.end()) break;
        const queue_score score = read_score((*at++).text());
        if (score.is_upgrade) waiter.wants = wish::upgrade;
        waiter.waited = since(score.ticket, now);
        const auto found = known.find(waiter.id);
        if (found == known.end()) {
            waiter.is_silent = true;  // nobody knows what it wants; a hand-over drops it
        } else {
            const waiter_entry entry = read_entry(found->second);
            if (entry.wants && *entry.wants != wish::write) waiter.wants = *entry.wants;
            waiter.permits = entry.permits.value_or(1);
            if (entry.last_poll && entry.poll_interval) waiter.unseen = since(*entry.last_poll, now);
            waiter.is_silent = entry.is_silent_at(now);
        }
        result.push_back(std::move(waiter));
    }
    return result;
}

// A note of an id that neither holds nor waits is left from a dead one, and nobody's.
template <typename Party>
void tell_notes(std::vector<Party>& parties, const std::map<std::string_view, std::string_view>& notes) {
    if (notes.empty()) return;
    for (Party& one : parties) {
        const auto found = notes.find(one.id);
        if (found != notes.end()) one.note = found->second;
    }
}

}  // namespace

void set_token(seen_holder& holder, std::optional<std::uint64_t> token, microseconds now) {
    holder.token = token;
    if (token) holder.held = since(microseconds(static_cast<std::int64_t>(*token)), now);
}

void write_look(redis::command& out, const lock_keys& keys) {
    using side = lock_keys::side;
    static const script& source = find("tools/look");
    payload(keys, {side::queue, side::waiters, side::fence, side::leases, side::grants, side::notes})
        .write(out, source);
    out.tell_if_moving();
}

std::optional<look_answer> read_look(const redis::reply_view& reply) {
    if (reply.type() != redis::resp_type::array || reply.size() != 10) return std::nullopt;
    const auto time_us = reply[0].to_integer();
    if (!time_us) return std::nullopt;
    look_answer lock;
    lock.server_time = microseconds(*time_us);
    if (!reply[6].is_aggregate()) lock.fence = token_in(reply[6].text());
    lock.waiters = read_waiters(reply[4], reply[5], lock.server_time);
    const auto left_ms = reply[2].to_integer().value_or(-1);
    const stored_lock stored{.type = reply[1].text(),
                             .key_left = left_ms < 0 ? std::nullopt : std::optional(milliseconds(left_ms)),
                             .value = reply[3],
                             .leases = reply[7],
                             .grants = reply[8]};
    const auto notes = pairs_of(reply[9]);
    tell_notes(lock.waiters, notes);
    if (stored.type == "none") return lock;
    const auto kinds = all_kinds();
    for (std::size_t i = 0; i < kinds.size() && !lock.kind; ++i) {
        if (kinds[i]->read_holders(stored, lock)) lock.kind = static_cast<lock_kind>(i);
    }
    tell_notes(lock.holders, notes);
    lock.is_no_lock = !lock.kind;
    return lock;
}

}  // namespace holdfast::wire
