// Checks that waiters that can be admitted are admitted soon.

#include <algorithm>

#include "wire/hold_id.hpp"
#include "world/rw_checker.hpp"

namespace holdfast::sim {
namespace {

bool in_the_way(char wants, char shape) {
    return shape != 0 && (wants != 'r' || has_write(shape));
}

}  // namespace

// The time at which the waiter at this rank can be admitted: the end of all holds that conflict with it. `never` if a
// waiter that comes first, and may still acquire, needs more than this one.
instant rw_checker::opens_at(const lock_record& lock, const rw_state& now, std::size_t rank, std::string_view prefer) {
    const rw_state::waiter& who = now.queue[rank];
    std::int64_t last_ms = now.now_ms;
    for (const auto& [id, ends] : now.leases) {
        if (id != who.id && in_the_way(who.wants, now.held(id))) last_ms = std::max(last_ms, ends);
    }
    if (is_foreign_there(now, lock) && (who.wants != 'r' || !now.writer.empty())) {
        if (lock.foreign_until_ms == no_expiry) return never;
        last_ms = std::max(last_ms, lock.foreign_until_ms + 2);  // it lives through that ms; see is_foreign_there()
    }
    if (now.writer.empty() && now.readers.empty()) last_ms = std::max(last_ms, now.gap_until_ms);
    for (std::size_t i = 0; i < now.queue.size(); ++i) {
        const rw_state::waiter& other = now.queue[i];
        // A position that an older snapshot restored survives a release by a token that the server has forgotten.
        if (i == rank || (gave_up(lock, other) && !checks_.excused.data_lost)) continue;
        if (!comes_before({other.wants, i}, {who.wants, rank}, prefer)) continue;
        const bool stricter = other.wants != who.wants;
        if (stricter && may_be_handed_to(lock, other)) return never;
    }
    return checks_.now() + milliseconds(last_ms - now.now_ms);
}

// As far as the scripts can know.
bool rw_checker::may_be_handed_to(const lock_record& lock, const rw_state::waiter& who) const {
    const std::string_view client = wire::client_of(who.id);
    const waiter* const known = find(lock, who);
    // Older data may show a position that its client has long left.
    if (known == nullptr && checks_.polls(client) && checks_.excused.data_lost) return true;
    if (known != nullptr && checks_.may_learn_late(asked_.keys.lock(), client, known->interval, known->asked))
        return true;
    return checks_.listens(asked_.keys.lock(), client);
}

void rw_checker::check_slow(const call& asked, lock_record& lock) {
    if (checks_.excused.corrupted || lock.tampered) return;
    const rw_state& now = lock.before;
    const instant settled = checks_.settled_since(asked.keys.lock());
    for (std::size_t rank = 0; rank < now.queue.size(); ++rank) {
        const rw_state::waiter& who = now.queue[rank];
        const auto found = lock.known.find(key_of(who));
        if (found == lock.known.end()) continue;
        waiter& known = found->second;
        if (opens_at(lock, now, rank, asked.prefer) > checks_.now()) {
            known.opens_at = never;
            continue;
        }
        if (known.opens_at == never) known.opens_at = checks_.now();
        const milliseconds allowed = checks_.finds_out_within(wire::client_of(who.id), rank == 0, known.interval);
        const instant opened = std::max(known.opens_at, settled);
        if (opened > checks_.now() || checks_.now() - opened <= allowed) continue;
        if (upgrades_nothing(now, who) || gave_up(lock, who) || lock.leaving.contains(who.id)) continue;
        if (checks_.may_be_forgotten(who.id)) continue;
        if (checks_.calm_since(wire::client_of(who.id), std::min(known.arrived, known.opens_at)))
            checks_.fail(who.id + " could have been admitted long ago");
    }
}

void rw_checker::update_queue(const call& asked, lock_record& lock, const rw_state& now) {
    for (std::size_t rank = 0; rank < now.queue.size(); ++rank) {
        const auto [found, fresh] = lock.known.try_emplace(key_of(now.queue[rank]));
        waiter& known = found->second;
        if (fresh) known = {.arrived = checks_.now(), .number = checks_.next_number++, .interval = asked.interval};
        if (now.queue[rank].id != asked.id || asked.what != step::acquire) continue;
        known.asked = checks_.now();
        known.interval = asked.interval;
    }
    update_opening_times(lock, now, asked.prefer);
}

void rw_checker::update_opening_times(lock_record& lock, const rw_state& now, std::string_view prefer) {
    for (std::size_t rank = 0; rank < now.queue.size(); ++rank) {
        const auto found = lock.known.find(key_of(now.queue[rank]));
        if (found == lock.known.end()) continue;
        waiter& known = found->second;
        const instant opens = opens_at(lock, now, rank, prefer);
        known.opens_at = known.opens_at <= checks_.now() && opens <= checks_.now() ? known.opens_at : opens;
    }
}

// Every release and every poll admits the waiters that can be admitted.
void rw_checker::check_not_left_waiting(const call& asked, const lock_record& lock, const rw_state& now) {
    // The scripts use the longest expiry ever seen of several foreign holders; only the last one is known here.
    if (asked.what == step::renew || checks_.excused.corrupted || lock.tampered) return;
    for (const rw_state::waiter& who : now.queue) {
        const waiter* const known = find(lock, who);
        if (known == nullptr || known->opens_at > checks_.now() || gave_up(lock, who)) continue;
        if (upgrades_nothing(now, who)) continue;
        if (calm(lock, who)) checks_.fail(who.id + " could be admitted and was not, by " + asked.id);
    }
}

void rw_checker::foreign_wrote(server& at, const wire::lock_keys& keys, std::int64_t until_ms) {
    lock_record& lock = locks_[keys.lock()];
    lock.foreign_until_ms = until_ms;
    for (auto& [id, who] : lock.known) who.opens_at = never;
    note_missing(lock, read_rw_state(at, keys));
}

// From now on the first waiter has to find out by polling.
void rw_checker::foreign_released(server& at, const wire::lock_keys& keys, wire::preference prefer) {
    using wire::preference;
    lock_record& lock = locks_[keys.lock()];
    const rw_state now = read_rw_state(at, keys);
    note_missing(lock, now);
    update_opening_times(lock, now,
                         prefer == preference::readers   ? "readers"
                         : prefer == preference::writers ? "writers"
                                                         : "arrival");
}

}  // namespace holdfast::sim
