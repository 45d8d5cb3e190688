#include "api/runtime/thread_owner.hpp"

#include <algorithm>
#include <vector>

namespace holdfast::api {
namespace {

struct held_here {
    std::weak_ptr<core> where;
    lock_count count;
};

// Without destructors, so still usable after this_thread is destroyed.
constinit thread_local std::uint64_t owner_number = 0;
constinit thread_local bool has_begun = false;
constinit thread_local bool has_ended = false;

class this_thread {
public:
    this_thread() { has_begun = true; }
    this_thread(const this_thread&) = delete;
    this_thread& operator=(const this_thread&) = delete;

    ~this_thread() {
        has_ended = true;
        for (const held_here& entry : held_) {
            const bool holds = entry.count->of_engine + entry.count->local > 0;
            const auto where = holds ? entry.where.lock() : nullptr;
            if (!where || where->forked()) continue;
            // An unlock that waits to enter the section runs before this.
            where->post([&there = *where, owner = this_thread_as_owner(), count = entry.count] {
                if (count->of_engine + count->local == 0) return;
                there.recorder().on_thread_exit_holding();
                if (count->local > 0) there.kept().abandon(owner);
                there.engine().abandon(owner, boot_now());
                count->of_engine = count->local = 0;
            });
        }
    }

    // Does not lock the weak pointers of other clients: the result might be the last reference.
    lock_count find(const std::shared_ptr<core>& where) const noexcept {
        for (const held_here& entry : held_) {
            if (!entry.where.owner_before(where) && !where.owner_before(entry.where)) return entry.count;
        }
        return nullptr;
    }

    lock_count find_or_make(const std::shared_ptr<core>& where) {
        if (lock_count known = find(where)) return known;
        std::erase_if(held_, [](const held_here& entry) { return entry.where.expired(); });
        return held_.emplace_back(held_here{where, std::make_shared<locked_levels>()}).count;
    }

private:
    std::vector<held_here> held_;
};

this_thread& mine() {
    thread_local this_thread instance;
    return instance;
}

}  // namespace

std::uint64_t next_owner_number() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

engine::owner_id this_thread_as_owner() {
    if (owner_number == 0) owner_number = next_owner_number();
    return engine::owner_id{owner_number};
}

lock_count locked_by_this_thread(const std::shared_ptr<core>& where) {
    return has_ended ? nullptr : mine().find_or_make(where);
}

lock_count known_locks_of_this_thread(const std::shared_ptr<core>& where) noexcept {
    return has_ended || !has_begun ? nullptr : mine().find(where);
}

void count_up(const lock_count& locked) noexcept {
    if (locked) ++locked->of_engine;
}

// An unlock of what the thread has not locked with that client is not counted.
void count_down(const lock_count& locked) noexcept {
    std::size_t before = locked ? locked->of_engine.load() : 0;
    while (before > 0 && !locked->of_engine.compare_exchange_weak(before, before - 1)) continue;
}

}  // namespace holdfast::api

holdfast::owner::owner() : number_(api::next_owner_number()) {}
