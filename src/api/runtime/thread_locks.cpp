#include "api/runtime/thread_locks.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace holdfast::api {

std::vector<thread_locks::entry>::iterator thread_locks::mine() noexcept {
    return std::find_if(entries_.begin(), entries_.end(),
                        [owner = this_thread_as_owner()](const entry& one) { return one.owner == owner; });
}

void thread_locks::add(std::uint64_t hold, engine::access level, const lock_count& count) noexcept {
    const std::lock_guard guard(mutex_);
    auto found = mine();
    if (found == entries_.end()) {
        // Entries of threads that unlocked through another object, or have ended, would accumulate.
        std::erase_if(entries_,
                      [](const entry& one) { return one.count && one.count->of_engine + one.count->local == 0; });
        try {
            found = entries_.insert(entries_.end(), entry{.owner = this_thread_as_owner(), .count = count});
        } catch (const std::bad_alloc&) {
            return;
        }
    }
    if (found->hold != hold) found->exclusive = found->shared = 0;
    found->hold = hold;
    ++found->levels(level);
}

void thread_locks::remove(engine::access level) noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = mine();
    if (found == entries_.end() || found->levels(level) == 0) return;
    --found->levels(level);
    if (found->exclusive + found->shared > 0) return;
    *found = std::move(entries_.back());
    entries_.pop_back();
}

std::vector<thread_locks::entry> thread_locks::take_all() noexcept {
    const std::lock_guard guard(mutex_);
    return std::exchange(entries_, {});
}

}  // namespace holdfast::api
