#include "cli/inspect/locks/lock_events.hpp"

#include "cli/inspect/output/lock_text.hpp"

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

template <typename List>
const typename List::value_type* find(const List& list, const std::string& id) {
    const auto found = std::ranges::find(list, id, &List::value_type::id);
    return found == list.end() ? nullptr : &*found;
}

// The two looks, and what follows from them, in the order it must have happened.
class comparison {
public:
    comparison(const lock_state& before, const lock_state& now) : before_(before), now_(now) {}

    std::vector<lock_event> run() {
        tell_ends();
        tell_waiters_that_left();
        tell_grants();
        tell_new_waiters();
        tell_missed();
        put_in_order();
        return std::move(events_);
    }

private:
    microseconds elapsed() const { return now_.server_time - before_.server_time; }
    bool fence_moved() const { return now_.fence && now_.fence != before_.fence; }

    template <typename Party>
    lock_event& add_of(happening what, const Party& one, std::string_view mode) {
        events_.push_back({.what = what, .when = now_.server_time, .id = one.id, .who = person(one)});
        events_.back().client = one.client;
        events_.back().mode = mode;
        return events_.back();
    }
    lock_event& add(happening what, const lock_holder& holder) {
        if (holder.token) last_told_ = std::max(last_told_, *holder.token);
        lock_event& event = add_of(what, holder, name_of(holder.mode));
        event.token = holder.token;
        return event;
    }
    lock_event& add(happening what, const lock_waiter& waiter) {
        lock_event& event = add_of(what, waiter, name_of(waiter.wants));
        event.waited = waiter.waited;
        return event;
    }

    void tell_ends() {
        for (const lock_holder& holder : before_.holders) {
            // The same id with a later token and the same mode: another program that came back, or a new grant.
            if (find(now_.holders, holder.id) != nullptr) continue;
            const bool over = holder.left && before_.server_time + *holder.left <= now_.server_time;
            lock_event& event = add(over ? happening::expired : happening::released, holder);
            if (holder.held) event.held = *holder.held + elapsed();
            if (last_gone_.empty()) last_gone_ = holder.id;
        }
    }

    // The former position of the first new holder; the end of the queue if no new holder waited.
    std::ptrdiff_t served_up_to() const {
        const auto served = std::ranges::find_if(before_.waiters, [this](const lock_waiter& waiter) {
            return find(now_.holders, waiter.id) != nullptr && find(before_.holders, waiter.id) == nullptr;
        });
        return served - before_.waiters.begin();
    }

    // Waiters of the first look that are not waiting at the second.
    void tell_waiters_that_left() {
        const std::ptrdiff_t served = served_up_to();
        std::ptrdiff_t position = -1;
        for (lock_waiter waiter : before_.waiters) {
            ++position;
            if (find(now_.waiters, waiter.id) != nullptr) continue;
            const lock_holder* const holder = find(now_.holders, waiter.id);
            const bool upgrade_failed =
                holder != nullptr && waiter.wants == wish::upgrade && holder->mode == access::read;
            if (holder != nullptr && !upgrade_failed) continue;
            waiter.waited += elapsed();
            // Before the one who has it now, and a token was given: its turn came and went while nobody looked.
            const bool had_its_turn = fence_moved() && !waiter.is_silent && position < served && !upgrade_failed;
            add(had_its_turn ? happening::handed_over : happening::gave_up, waiter);
            if (!had_its_turn) continue;
            explained_ = true;
            add(happening::released, waiter);
            events_.back().waited.reset();
        }
    }

    void tell_grants() {
        for (const lock_holder& holder : now_.holders) {
            const lock_holder* const earlier = find(before_.holders, holder.id);
            if (earlier != nullptr) {
                tell_change(*earlier, holder);
                continue;
            }
            const lock_waiter* const waited = find(before_.waiters, holder.id);
            lock_event& event = add(waited != nullptr ? happening::handed_over : happening::acquired, holder);
            if (holder.held) event.when = now_.server_time - *holder.held;
            if (waited == nullptr) continue;
            event.from = last_gone_;
            event.waited = std::max(waited->waited, event.when - (before_.server_time - waited->waited));
        }
    }

    void tell_change(const lock_holder& earlier, const lock_holder& holder) {
        if (earlier.mode == holder.mode) {
            if (holder.token) last_told_ = std::max(last_told_, *holder.token);
            return;
        }
        add(holder.mode == access::read ? happening::downgraded : happening::upgraded, holder);
    }

    void tell_new_waiters() {
        for (std::size_t position = 0; position < now_.waiters.size(); ++position) {
            const lock_waiter& waiter = now_.waiters[position];
            if (find(before_.waiters, waiter.id) != nullptr) continue;
            lock_event& event = add(happening::waiting, waiter);
            event.when = now_.server_time - waiter.waited;
            event.position = position + 1;
        }
    }

    // Of an end it is known only that it came between the two looks. If what came next could not begin before it, then
    // no later than that.
    void put_in_order() {
        const auto begins = [](const lock_event& e) {
            return e.what == happening::acquired || (e.what == happening::handed_over && e.token);
        };
        for (lock_event& end : events_) {
            const bool is_end = end.what == happening::released || end.what == happening::expired ||
                                (end.what == happening::handed_over && !end.token);
            if (!is_end) continue;
            const microseconds seen = end.when;
            for (const lock_event& next : events_) {
                const bool may_share = end.mode == next.mode && (end.mode == "read" || end.mode == "permits");
                if (begins(next) && !may_share) end.when = std::min(end.when, next.when);
            }
            end.when = std::max(end.when, before_.server_time);
            if (end.held) *end.held -= seen - end.when;
        }
        std::ranges::stable_sort(events_, {}, &lock_event::when);
    }

    void tell_missed() {
        if (!fence_moved() || explained_ || *now_.fence <= last_told_) return;
        events_.push_back({.what = happening::missed, .when = now_.server_time, .token = now_.fence});
    }

    const lock_state& before_;
    const lock_state& now_;
    std::vector<lock_event> events_;
    std::string last_gone_;
    std::uint64_t last_told_ = 0;
    bool explained_ = false;
};

}  // namespace

std::string_view name_of(happening what) noexcept {
    constexpr std::array<std::string_view, 10> names{"held",     "acquired", "handed over", "upgraded", "downgraded",
                                                     "released", "expired",  "waiting",     "gave up",  "missed"};
    return names[static_cast<std::size_t>(what)];
}

void keep_clients(const lock_state& before, lock_state& now) {
    const auto fill = [](const auto& known, auto& present) {
        for (auto& one : present) {
            const auto same = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.id == one.id; });
            if (!one.client && same != known.end()) one.client = same->client;
        }
    };
    fill(before.holders, now.holders);
    fill(before.waiters, now.waiters);
    fill(before.waiters, now.holders);
}

std::vector<lock_event> first_events(const lock_state& now) {
    lock_state nothing(now.where);
    nothing.server_time = now.server_time;
    nothing.fence = now.fence;
    std::vector<lock_event> events = comparison(nothing, now).run();
    for (lock_event& event : events) {
        if (event.what == happening::acquired) event.what = happening::held;
    }
    return events;
}

std::vector<lock_event> events_between(const lock_state& before, const lock_state& now) {
    return comparison(before, now).run();
}

}  // namespace holdfast::cli
