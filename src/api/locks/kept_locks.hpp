// All kept locks of a client: who shares which, their timers, and how many holds they may keep.
#pragma once

#include "engine/terms.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace holdfast::api {

class core;
class kept_lock;
struct lock_definition;

class kept_locks {
public:
    kept_locks(core& where, std::size_t most_kept);
    kept_locks(const kept_locks&) = delete;
    kept_locks& operator=(const kept_locks&) = delete;

    // --- any thread
    // Whether there is any. A client without pays for this question and no more.
    bool any() const noexcept { return count_.load(std::memory_order_relaxed) > 0; }
    // Lock objects of one name share it if all their options are the same. Counts one object more.
    std::shared_ptr<kept_lock> share(const lock_definition& lock);
    // The kept lock of that name from which this owner has a local grant; null if none.
    std::shared_ptr<kept_lock> held_by(engine::owner_id owner, const engine::lock_keys& keys);
    void abandon(engine::owner_id owner);
    // At exit(): releases every unused hold, and keeps none from now on.
    void close();
    // The releases that are under way have been answered, or would not be waited for any longer.
    void wait_until_given_back(instant begun);
    // exit() gives nothing back any more. For the core, before it goes.
    void leave_process();
    void forget(const std::string& key);
    void has_hold(const std::shared_ptr<kept_lock>& lock, instant now);
    void has_no_hold(const kept_lock& lock);

    // --- inside the section
    void wake(instant at, std::weak_ptr<kept_lock> whom) { timers_.emplace(at, std::move(whom)); }
    instant deadline() const noexcept { return timers_.empty() ? never : timers_.begin()->first; }
    void on_timer(instant now);

private:
    std::vector<std::shared_ptr<kept_lock>> all();
    void give_back_longest_unused();

    core& core_;
    const std::size_t most_kept_;
    std::mutex mutex_;
    bool is_closed_ = false;
    std::unordered_map<std::string, std::vector<std::weak_ptr<kept_lock>>> by_key_;
    std::atomic<std::size_t> count_ = 0;  // of names
    // Those that have a hold, by a time before which it was used last: what has been used since is put back when it
    // comes to the front.
    std::multimap<instant, std::weak_ptr<kept_lock>> by_age_;
    std::unordered_map<const kept_lock*, std::multimap<instant, std::weak_ptr<kept_lock>>::iterator> age_of_;
    std::multimap<instant, std::weak_ptr<kept_lock>> timers_;
};

}  // namespace holdfast::api
