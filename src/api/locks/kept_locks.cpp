#include "api/locks/kept_locks.hpp"

#include "api/locks/kept_lock.hpp"
#include "api/operations/blocking.hpp"

#include <set>

namespace holdfast::api {
namespace {

// What exit() gives back.
class kept_by_process {
public:
    void add(kept_locks& one) {
        const std::lock_guard held(mutex_);
        all_.insert(&one);
    }
    void remove(kept_locks& one) {
        const std::lock_guard held(mutex_);
        all_.erase(&one);
    }
    // The section may be occupied by a thread that ends with the process. So the releases are waited for.
    void give_back() {
        const std::lock_guard held(mutex_);
        for_each([](kept_locks& one) { one.close(); });
        if (!may_block()) return;
        const instant begun = boot_now();
        for_each([begun](kept_locks& one) { one.wait_until_given_back(begun); });
    }

    const std::uint64_t made_in = fork_generation();

private:
    // Handlers that run meanwhile may add some and remove some.
    template <class Function>
    void for_each(Function function) {
        for (kept_locks* const one : std::vector(all_.begin(), all_.end())) {
            if (all_.contains(one)) function(*one);
        }
    }

    // Held until all is given back, so that none goes meanwhile; recursive for those handlers.
    std::recursive_mutex mutex_;
    std::set<kept_locks*> all_;
};

// Never destroyed: clients may be static objects. The child of a fork has its own: the mutex may have been locked.
kept_by_process& process() {
    static std::atomic<kept_by_process*> present = nullptr;
    kept_by_process* known = present.load();
    while (known == nullptr || known->made_in != fork_generation()) {
        auto made = std::make_unique<kept_by_process>();
        if (present.compare_exchange_strong(known, made.get())) known = made.release();
    }
    return *known;
}

}  // namespace

kept_locks::kept_locks(core& where, std::size_t most_kept) : core_(where), most_kept_(most_kept) {}

void kept_locks::leave_process() {
    process().remove(*this);
}

void kept_locks::wait_until_given_back(instant begun) {
    if (!core_.forked()) core_.wait_for_posted_releases(begun + core_.request_timeout());
}

std::shared_ptr<kept_lock> kept_locks::share(const lock_definition& lock) {
    // In a child every use fails, and a thread of the parent may have had the mutex.
    if (core_.forked()) return std::make_shared<kept_lock>(core_, lock);
    static const int at_exit = std::atexit([] { process().give_back(); });
    static_cast<void>(at_exit);
    process().add(*this);
    // Destroyed after the mutex is unlocked: the last reference may be here, and what is destroyed forgets itself.
    std::vector<std::shared_ptr<kept_lock>> live;
    const std::lock_guard held(mutex_);
    auto& same_name = by_key_[lock.keys->lock()];
    for (const auto& each : same_name) {
        if (auto one = each.lock()) live.push_back(std::move(one));
    }
    for (const auto& each : live) {
        if (!each->is_like(lock)) continue;
        each->add_object();
        return each;
    }
    auto made = std::make_shared<kept_lock>(core_, lock);
    if (is_closed_) made->close();
    same_name.push_back(made);
    live.push_back(made);
    for (const auto& each : live) {
        if (live.size() > 1) each->has_a_sibling();
    }
    count_.store(by_key_.size(), std::memory_order_relaxed);
    return made;
}

std::shared_ptr<kept_lock> kept_locks::held_by(engine::owner_id owner, const engine::lock_keys& keys) {
    std::vector<std::shared_ptr<kept_lock>> candidates;
    {
        const std::lock_guard held(mutex_);
        const auto found = by_key_.find(keys.lock());
        if (found == by_key_.end()) return nullptr;
        for (const auto& each : found->second) {
            if (auto live = each.lock()) candidates.push_back(std::move(live));
        }
    }
    for (auto& each : candidates) {
        if (each->is_held_by(owner)) return std::move(each);
    }
    return nullptr;
}

std::vector<std::shared_ptr<kept_lock>> kept_locks::all() {
    std::vector<std::shared_ptr<kept_lock>> live;
    const std::lock_guard held(mutex_);
    for (const auto& [key, same_name] : by_key_) {
        for (const auto& each : same_name) {
            if (auto one = each.lock()) live.push_back(std::move(one));
        }
    }
    return live;
}

void kept_locks::abandon(engine::owner_id owner) {
    for (const auto& each : all()) each->abandon(owner);
}

void kept_locks::close() {
    if (core_.forked()) return;
    {
        const std::lock_guard held(mutex_);
        is_closed_ = true;
    }
    for (const auto& each : all()) each->close();
}

void kept_locks::forget(const std::string& key) {
    const std::lock_guard held(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return;
    std::erase_if(found->second, [](const auto& each) { return each.expired(); });
    if (found->second.empty()) by_key_.erase(found);
    count_.store(by_key_.size(), std::memory_order_relaxed);
}

void kept_locks::has_hold(const std::shared_ptr<kept_lock>& lock, instant now) {
    {
        const std::lock_guard held(mutex_);
        const auto [known, is_new] = age_of_.try_emplace(lock.get());
        if (is_new) known->second = by_age_.emplace(now, lock);
        core_.loop().listen(true);
        if (by_age_.size() <= most_kept_) return;
    }
    give_back_longest_unused();
}

void kept_locks::has_no_hold(const kept_lock& lock) {
    const std::lock_guard held(mutex_);
    const auto known = age_of_.find(&lock);
    if (known == age_of_.end()) return;
    by_age_.erase(known->second);
    age_of_.erase(known);
    if (age_of_.empty()) core_.loop().listen(false);
}

// A few that were used meanwhile are passed over; more would keep the caller.
void kept_locks::give_back_longest_unused() {
    constexpr int most_looks = 16;
    for (int looks = 0; looks < most_looks; ++looks) {
        std::shared_ptr<kept_lock> oldest;
        instant since{};
        {
            const std::lock_guard held(mutex_);
            if (by_age_.size() <= most_kept_) return;
            since = by_age_.begin()->first;
            oldest = by_age_.begin()->second.lock();
        }
        if (!oldest) return;
        const instant used = oldest->last_use();
        if (used <= since) return oldest->give_back();
        const std::lock_guard held(mutex_);
        const auto known = age_of_.find(oldest.get());
        if (known == age_of_.end()) continue;
        by_age_.erase(known->second);
        known->second = by_age_.emplace(used, oldest);
    }
}

void kept_locks::on_timer(instant now) {
    while (!timers_.empty() && timers_.begin()->first <= now) {
        const auto whom = timers_.begin()->second.lock();
        timers_.erase(timers_.begin());
        if (whom) whom->on_timer();
    }
}

}  // namespace holdfast::api
