#include "cli/inspect/locks/lock_state.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace holdfast::cli {
namespace {

template <typename Party>
void add(std::vector<Party>& all, std::vector<Party> more) {
    for (Party& one : more) {
        const auto known = std::ranges::find(all, one.id, &Party::id);
        if (known == all.end()) {
            all.push_back(std::move(one));
            continue;
        }
        known->backing += one.backing;
        if (!known->client) known->client = std::move(one.client);
        if (known->note.empty()) known->note = std::move(one.note);
    }
}

}  // namespace

lock_ref::lock_ref(wire::lock_name its_name, wire::key_naming its_naming, std::string_view prefix)
    : name(std::move(its_name)), naming(its_naming), keys(wire::make_keys(name, naming, prefix)) {}

lock_state::lock_state(lock_ref lock, wire::look_answer seen)
    : where(std::move(lock)),
      server_time(seen.server_time),
      kind(seen.kind),
      is_no_lock(seen.is_no_lock),
      looks_like(std::move(seen.looks_like)),
      fence(seen.fence),
      limit(std::move(seen.limit)) {
    for (wire::seen_holder& one : seen.holders) holders.push_back({std::move(one)});
    for (wire::seen_waiter& one : seen.waiters) waiters.push_back({std::move(one)});
}

std::uint64_t lock_state::permits_out() const noexcept {
    std::uint64_t sum = 0;
    for (const lock_holder& holder : holders) sum += holder.permits;
    return sum;
}

microseconds lock_state::oldest_wait() const noexcept {
    microseconds oldest{0};
    for (const lock_waiter& waiter : waiters) oldest = std::max(oldest, waiter.waited);
    return oldest;
}

lock_state merge(std::vector<lock_state> seen, std::size_t servers) {
    lock_state all = std::move(seen.front());
    for (std::size_t i = 1; i < seen.size(); ++i) {
        lock_state& next = seen[i];
        if (!all.kind || next.is_shared_kind()) all.kind = next.kind ? next.kind : all.kind;
        all.is_moving = all.is_moving || next.is_moving;
        all.is_no_lock = all.is_no_lock || next.is_no_lock;
        if (all.looks_like.empty()) all.looks_like = next.looks_like;
        all.fence = std::max(all.fence, next.fence);
        add(all.holders, std::move(next.holders));
        add(all.waiters, std::move(next.waiters));
    }
    std::ranges::stable_sort(all.holders, std::ranges::greater(), &lock_holder::backing);
    all.servers = servers;
    return all;
}

lock_state merge(std::vector<std::optional<lock_state>> answers) {
    std::vector<lock_state> seen;
    for (auto& one : answers) {
        if (one) seen.push_back(std::move(*one));
    }
    return merge(std::move(seen), answers.size());
}

void keep_majorities(std::vector<lock_state>& locks) {
    for (lock_state& lock : locks) {
        std::erase_if(lock.holders, [&lock](const lock_holder& holder) { return !lock.is_backed(holder); });
    }
}

std::string_view mode_of(const lock_state& lock) noexcept {
    if (lock.is_no_lock) return "not a lock";
    if (lock.is_free()) return lock.is_moving ? "moving" : "free";
    if (lock.limit) return "semaphore";
    // Some of several servers may be behind: the best backed holders count.
    const auto writes = [&lock](const lock_holder& holder) {
        return holder.backing == lock.holders.front().backing && holder.mode != access::read;
    };
    if (!lock.is_shared_kind()) return "exclusive";
    return std::ranges::any_of(lock.holders, writes) ? "write" : "read";
}

std::string_view name_of(access mode) noexcept {
    constexpr std::array<std::string_view, 5> names{"exclusive", "read", "write", "both", "permits"};
    return names[static_cast<std::size_t>(mode)];
}

std::string_view name_of(wish wants) noexcept {
    constexpr std::array<std::string_view, 3> names{"write", "read", "upgrade"};
    return names[static_cast<std::size_t>(wants)];
}

}  // namespace holdfast::cli
