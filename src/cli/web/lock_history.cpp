#include "cli/web/lock_history.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace holdfast::cli {
namespace {

template <typename Item>
void keep_latest(std::deque<Item>& items, std::size_t most) {
    while (items.size() > most) items.pop_front();
}

past_hold* open_hold(lock_past& past, const std::string& id) {
    const auto found = std::find_if(past.holds.rbegin(), past.holds.rend(),
                                    [&id](const past_hold& one) { return one.id == id && !one.until; });
    return found == past.holds.rend() ? nullptr : &*found;
}

// Nobody held it beside a holder that excludes others: what a look saw of the former holds only later ended by then.
void end_former_holds(lock_past& past, const lock_event& grant) {
    if (grant.mode != "exclusive" && grant.mode != "write") return;
    for (past_hold& one : past.holds) {
        if (one.id != grant.id && one.until && *one.until > grant.when) one.until = std::max(one.since, grant.when);
    }
}

json epoch_ms(microseconds instant) {
    return std::chrono::floor<milliseconds>(instant).count();
}

// As if the lock had been looked at, and found free.
lock_state as_free(const lock_state& before, microseconds now) {
    lock_state free(before.where);
    free.server_time = now;
    free.fence = before.fence;
    free.servers = before.servers;
    return free;
}

}  // namespace

void waiting_times::add(microseconds waited, bool has_acquired) {
    const auto bound = std::ranges::find_if(bounds_ms, [&](std::int64_t ms) { return waited <= milliseconds(ms); });
    ++(has_acquired ? acquired : gave_up)[static_cast<std::size_t>(bound - bounds_ms.begin())];
}

void lock_history::add(const std::vector<lock_state>& locks, bool is_complete) {
    std::set<std::string_view> seen;
    microseconds now{0};
    for (const lock_state& lock : locks) {
        seen.insert(lock.where.keys.lock());
        now = std::max(now, lock.server_time);
        add(lock);
    }
    if (is_complete) {
        std::vector<lock_state> gone;
        for (const auto& [key, lock] : latest_) {
            if (!seen.contains(key)) gone.push_back(as_free(lock, std::max(now, lock.server_time)));
        }
        for (const lock_state& lock : gone) {
            add(lock);
            latest_.erase(lock.where.keys.lock());
        }
    }
    forget_some_out_of_sight(seen);
    forget_some();
}

// What cannot be seen now (it moves between members of a Cluster) is compared when it can be seen again.
void lock_history::add(const lock_state& look) {
    if (look.is_moving || look.is_no_lock) return;
    lock_state now = look;
    std::erase_if(now.holders, [&now](const lock_holder& holder) { return !now.is_backed(holder); });
    const auto before = latest_.find(now.where.keys.lock());
    if (before == latest_.end()) {
        for (const lock_event& event : first_events(now)) {
            if (event.what != happening::missed) note(now, event);
        }
        latest_.emplace(now.where.keys.lock(), std::move(now));
        return;
    }
    keep_clients(before->second, now);
    for (const lock_event& event : events_between(before->second, now)) note(now, event);
    before->second = std::move(now);
}

void lock_history::note(const lock_state& now, const lock_event& event) {
    lock_past& past = pasts_[now.where.keys.lock()];
    past.changed_at = now.server_time;
    switch (event.what) {
        case happening::held:
        case happening::acquired:
        case happening::handed_over: {
            const bool is_new = event.what != happening::held;
            end_former_holds(past, event);
            past.holds.push_back(
                {event.id, event.who, event.mode, event.token, event.when, std::nullopt, false, event.waited});
            if (is_new) ++past.grants;
            if (event.what == happening::acquired) past.times.add(microseconds(0), true);
            if (event.waited) {
                past.times.add(*event.waited, true);
                past.waits.push_back({event.id, event.who, event.when - *event.waited, event.when, true});
            }
            break;
        }
        case happening::released:
        case happening::expired:
            if (past_hold* const hold = open_hold(past, event.id)) {
                hold->until = event.when;
                hold->has_expired = event.what == happening::expired;
            }
            break;
        case happening::upgraded:
        case happening::downgraded:
            if (past_hold* const hold = open_hold(past, event.id)) hold->mode = event.mode;
            break;
        case happening::gave_up: {
            const microseconds waited = event.waited.value_or(microseconds(0));
            past.times.add(waited, false);
            past.waits.push_back({event.id, event.who, event.when - waited, event.when, false});
            break;
        }
        case happening::missed:
            ++past.unseen;
            break;
        case happening::waiting:
            break;
    }
    keep_latest(past.holds, limits_.holds);
    keep_latest(past.waits, limits_.waits);
}

void lock_history::forget_some_out_of_sight(const std::set<std::string_view>& seen) {
    if (latest_.size() <= seen.size() + limits_.locks) return;
    std::vector<std::pair<microseconds, std::string>> by_age;
    for (const auto& [key, lock] : latest_) {
        if (!seen.contains(key)) by_age.emplace_back(lock.server_time, key);
    }
    if (by_age.size() <= limits_.locks) return;
    std::ranges::sort(by_age);
    by_age.resize(by_age.size() - limits_.locks);
    for (const auto& [seen_at, key] : by_age) latest_.erase(key);
}

void lock_history::forget_some() {
    if (pasts_.size() <= limits_.locks) return;
    std::vector<std::pair<microseconds, std::string>> by_age;
    for (const auto& [key, past] : pasts_) by_age.emplace_back(past.changed_at, key);
    std::ranges::sort(by_age);
    by_age.resize(pasts_.size() - limits_.locks);
    for (const auto& [changed_at, key] : by_age) pasts_.erase(key);
}

const lock_past* lock_history::of(const std::string& key) const {
    const auto found = pasts_.find(key);
    return found == pasts_.end() ? nullptr : &found->second;
}

json to_json(const lock_past& past) {
    json holds = json::array();
    json waits = json::array();
    for (const past_hold& one : past.holds) {
        holds.push_back({{"id", one.id},
                         {"who", one.who},
                         {"mode", one.mode},
                         {"token", one.token ? json(*one.token) : json()},
                         {"since", epoch_ms(one.since)},
                         {"until", one.until ? epoch_ms(*one.until) : json()},
                         {"expired", one.has_expired},
                         {"waited_ms", one.waited ? epoch_ms(*one.waited) : json()}});
    }
    for (const past_wait& one : past.waits) {
        waits.push_back({{"id", one.id},
                         {"who", one.who},
                         {"since", epoch_ms(one.since)},
                         {"until", epoch_ms(one.until)},
                         {"acquired", one.has_acquired}});
    }
    return {
        {"holds", std::move(holds)},
        {"waits", std::move(waits)},
        {"waiting",
         {{"bounds_ms", waiting_times::bounds_ms}, {"acquired", past.times.acquired}, {"gave_up", past.times.gave_up}}},
        {"grants", past.grants},
        {"unseen", past.unseen}};
}

}  // namespace holdfast::cli
