#include "api/locks/fast_users.hpp"

#include "base/boot_clock.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::api {
namespace {

using guard = std::lock_guard<std::mutex>;

constexpr std::size_t parts_for_readers = 8;

}  // namespace

fast_users::user* fast_users::part::find(engine::owner_id owner) noexcept {
    const auto found = std::ranges::find(users, owner, &user::owner);
    return found == users.end() ? nullptr : &*found;
}

unsigned fast_users::part::count(std::uint64_t hold) const noexcept {
    return static_cast<unsigned>(std::ranges::count(users, hold, &user::hold));
}

void fast_users::part::remove(user& one) noexcept {
    if (&one != &users.back()) one = std::move(users.back());
    users.pop_back();
}

fast_users::fast_users(engine::lock_kind kind, unsigned max_depth)
    : is_exclusive_(kind == engine::lock_kind::mutex),
      max_depth_(max_depth),
      size_(is_exclusive_ ? 1 : parts_for_readers),
      parts_(std::make_unique<part[]>(size_)) {}

bool fast_users::acquire(engine::owner_id owner, thread_locks& object, lock_count& count) {
    part& mine = of(owner);
    const guard held(mine.mutex);
    if (!mine.is_open) {
        is_asked_for_.store(true, std::memory_order_relaxed);
        return false;
    }
    user* again = mine.find(owner);
    if (again != nullptr && (again->hold != mine.terms.hold || again->levels >= max_depth_)) return false;
    // Claims know which level is of which lock object; a note knows one object.
    if (again != nullptr && again->object != &object) return false;
    // What else the thread has by local grants only the machine knows.
    if (again == nullptr && count->local.load(std::memory_order_relaxed) > 0) return false;
    if (again == nullptr && is_exclusive_ && mine.count(mine.terms.hold) > 0) return false;
    // Read when the mutex is held: a thread that slept before it must not believe in what has run out since.
    if (boot_now() >= mine.terms.until) return false;
    if (again == nullptr) again = &mine.users.emplace_back(user{owner, &object, std::move(count), mine.terms.hold, 0});
    ++again->levels;
    again->count->local.fetch_add(1, std::memory_order_relaxed);
    return true;
}

fast_users::answer fast_users::release(engine::owner_id owner) noexcept {
    part& mine = of(owner);
    const guard held(mine.mutex);
    user* const found = mine.find(owner);
    if (found == nullptr) return answer::unknown;
    if (!mine.is_open || found->hold != mine.terms.hold) {
        return found->levels > 1 ? answer::unknown : answer::ask_machine;
    }
    found->count->local.fetch_sub(1, std::memory_order_relaxed);
    if (--found->levels > 0) return answer::done;
    mine.used = boot_now();
    mine.remove(*found);
    return answer::done;
}

bool fast_users::knows(engine::owner_id owner) noexcept {
    part& mine = of(owner);
    const guard held(mine.mutex);
    return mine.find(owner) != nullptr;
}

bool fast_users::any() noexcept {
    return std::ranges::any_of(all(), [](part& each) {
        const guard held(each.mutex);
        return !each.users.empty();
    });
}

instant fast_users::last_use() noexcept {
    instant last{};
    for (part& each : all()) {
        const guard held(each.mutex);
        last = std::max(last, each.used);
    }
    return last;
}

void fast_users::open(const engine::local::fast_terms& terms) noexcept {
    open_ = terms.hold;
    is_asked_for_.store(false, std::memory_order_relaxed);
    for (part& each : all()) {
        const guard held(each.mutex);
        each.is_open = true;
        each.terms = terms;
    }
}

fast_users::tally fast_users::close() noexcept {
    tally all_of_them{.hold = std::exchange(open_, 0)};
    for (part& each : all()) {
        const guard held(each.mutex);
        each.is_open = false;
        all_of_them.users += each.count(all_of_them.hold);
        all_of_them.used = std::max(all_of_them.used, each.used);
    }
    return all_of_them;
}

fast_users::user fast_users::take(engine::owner_id owner) noexcept {
    part& mine = of(owner);
    const guard held(mine.mutex);
    user* const found = mine.find(owner);
    if (found == nullptr) return {};
    user taken = std::move(*found);
    mine.remove(*found);
    return taken;
}

std::vector<fast_users::user> fast_users::take_all(const thread_locks& object) {
    std::vector<user> taken;
    for (part& each : all()) {
        const guard held(each.mutex);
        const auto rest = std::partition(each.users.begin(), each.users.end(),
                                         [&object](const user& one) { return one.object != &object; });
        taken.insert(taken.end(), std::make_move_iterator(rest), std::make_move_iterator(each.users.end()));
        each.users.erase(rest, each.users.end());
    }
    return taken;
}

}  // namespace holdfast::api
