#include "cli/inspect/lock_state.hpp"

#include <algorithm>

namespace holdfast::cli {

lock_ref::lock_ref(wire::lock_name its_name, wire::key_naming its_naming, std::string_view prefix)
    : name(std::move(its_name)), naming(its_naming), keys(wire::make_keys(name, naming, prefix)) {}

microseconds lock_state::oldest_wait() const noexcept {
    microseconds oldest{0};
    for (const lock_waiter& waiter : waiters) oldest = std::max(oldest, waiter.waited);
    return oldest;
}

std::string_view mode_of(const lock_state& lock) noexcept {
    if (lock.is_no_lock) return "not a lock";
    if (lock.is_free()) return lock.is_moving ? "moving" : "free";
    // Of several servers, some may be behind: what the best backed holders do counts.
    const auto writes = [&lock](const lock_holder& holder) {
        return holder.backing == lock.holders.front().backing && holder.mode != access::read;
    };
    if (!lock.is_shared_kind) return "exclusive";
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
