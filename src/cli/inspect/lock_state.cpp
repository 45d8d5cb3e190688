#include "cli/inspect/lock_state.hpp"

#include <algorithm>

namespace holdfast::cli {

lock_ref::lock_ref(wire::lock_name its_name, wire::key_naming its_naming, std::string_view prefix)
    : name(std::move(its_name)), naming(its_naming), keys(wire::make_keys(name, naming, prefix)) {}

lock_state::lock_state(lock_ref lock, wire::look_answer seen)
    : where(std::move(lock)),
      server_time(seen.server_time),
      kind(seen.kind),
      is_no_lock(seen.is_no_lock),
      looks_like(std::move(seen.looks_like)),
      fence(seen.fence) {
    for (wire::seen_holder& one : seen.holders) holders.push_back({std::move(one)});
    for (wire::seen_waiter& one : seen.waiters) waiters.push_back({std::move(one)});
}

microseconds lock_state::oldest_wait() const noexcept {
    microseconds oldest{0};
    for (const lock_waiter& waiter : waiters) oldest = std::max(oldest, waiter.waited);
    return oldest;
}

std::string_view mode_of(const lock_state& lock) noexcept {
    if (lock.is_no_lock) return "not a lock";
    if (lock.is_free()) return lock.is_moving ? "moving" : "free";
    // Some of several servers may be behind: the best backed holders count.
    const auto writes = [&lock](const lock_holder& holder) {
        return holder.backing == lock.holders.front().backing && holder.mode != access::read;
    };
    if (!lock.is_shared_kind()) return "exclusive";
    return std::ranges::any_of(lock.holders, writes) ? "write" : "read";
}

std::string_view name_of(access mode) noexcept {
    switch (mode) {
        case access::exclusive:
            return "exclusive";
        case access::read:
            return "read";
        case access::write:
            return "write";
        case access::both:
            return "both";
    }
    return "";
}

std::string_view name_of(wish wants) noexcept {
    switch (wants) {
        case wish::write:
            return "write";
        case wish::read:
            return "read";
        case wish::upgrade:
            return "upgrade";
    }
    return "";
}

}  // namespace holdfast::cli
