// The fast path of a kept lock: threads that use its hold without the machine of local grants.
//
// Threads are spread over parts, each with a mutex and cache lines of its own, so that readers on several cores do not
// meet. To acquire, a thread notes itself in its part; the part knows until when that may be done, and of which hold.
// Whoever needs the machine closes all parts, which tells it how many users there are, and opens them again afterwards.
// What users do while the parts are closed they tell the machine themselves, under its mutex.
//
// Order of the mutexes: that of the machine, then that of a part. A user is noted in one place only: here, or as a
// claim of the machine. So a level is released once, whoever does it.
#pragma once

#include "api/runtime/thread_locks.hpp"
#include "engine/local/local_grants.hpp"

#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace holdfast::api {

class fast_users {
public:
    struct user {
        engine::owner_id owner{};
        thread_locks* object = nullptr;  // of the lock object by which it has all its levels
        lock_count count;                // of its thread
        std::uint64_t hold = 0;
        unsigned levels = 0;
    };
    enum class answer : std::uint8_t { done, ask_machine, unknown };

    fast_users(engine::lock_kind kind, unsigned max_depth);

    // --- without the machine's mutex
    // Takes the count if it is done.
    bool acquire(engine::owner_id owner, thread_locks& object, lock_count& count);
    // ask_machine: take() it, and tell the machine. unknown: also of a user with several levels that has to do so.
    answer release(engine::owner_id owner) noexcept;
    bool knows(engine::owner_id owner) noexcept;
    bool any() noexcept;
    instant last_use() noexcept;
    // Somebody would have used it.
    bool is_asked_for() const noexcept { return is_asked_for_.load(std::memory_order_relaxed); }

    // --- with it
    struct tally {
        std::uint64_t hold = 0;
        unsigned users = 0;
        instant used{};
    };
    bool is_open() const noexcept { return open_ != 0; }
    void open(const engine::local::fast_terms& terms) noexcept;
    // Of the hold that was open.
    tally close() noexcept;
    // Takes that user out; no levels: unknown.
    user take(engine::owner_id owner) noexcept;
    std::vector<user> take_all(const thread_locks& object);

private:
    struct alignas(64) part {
        std::mutex mutex;
        // --- guarded by it
        bool is_open = false;
        engine::local::fast_terms terms;
        instant used{};
        std::vector<user> users;

        user* find(engine::owner_id owner) noexcept;
        unsigned count(std::uint64_t hold) const noexcept;
        void remove(user& one) noexcept;
    };

    std::span<part> all() noexcept { return {parts_.get(), size_}; }
    part& of(engine::owner_id owner) noexcept { return parts_[static_cast<std::uint64_t>(owner) % size_]; }

    const bool is_exclusive_;
    const unsigned max_depth_;
    const std::size_t size_;
    const std::unique_ptr<part[]> parts_;
    std::atomic<bool> is_asked_for_ = false;
    std::uint64_t open_ = 0;  // the hold; 0: closed. Guarded by the machine's mutex
};

}  // namespace holdfast::api
