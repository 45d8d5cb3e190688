// A kept lock: the edge of the machine of local grants (engine/local), for threads, leases and asynchronous operations.
//
// One mutex guards the machine. It is held for a few dozen instructions, never during a system call, a callback or a
// visit to the serial section. What the machine wants of the engine is queued under the mutex and carried out in the
// serial section, in that order; what it tells owners is told after the mutex is left.
//
// Threads that lock and unlock an unused hold, or read by one that others read by, do not even take that mutex: see
// fast_users.hpp. Only what every local grant costs remains, a note of who it is and a look at the clock.
//
// Lives as long as a lock object, a local grant or a visit to the section needs it; never keeps the core.
#pragma once

#include "api/locks/fast_users.hpp"
#include "api/locks/hold_requests.hpp"
#include "api/locks/local_face.hpp"
#include "api/locks/lock_definition.hpp"
#include "base/boot_clock.hpp"

#include <deque>
#include <unordered_map>

namespace holdfast::api {

class kept_lock final : public std::enable_shared_from_this<kept_lock>, private serial_task {
public:
    // The number of a local grant is never that of a hold.
    static constexpr std::uint64_t local_serial = std::uint64_t{1} << 63;

    kept_lock(core& where, const lock_definition& lock);
    ~kept_lock();

    core& where() const noexcept { return core_; }
    const std::shared_ptr<const engine::lock_keys>& keys() const noexcept { return lock_.keys; }
    const lock_definition& definition() const noexcept { return lock_; }
    bool is_like(const lock_definition& other) const noexcept;
    void add_object();
    void remove_object();

    // --- for threads that lock and unlock an object
    // False: nothing happened, and acquire() decides.
    bool acquire_fast(engine::owner_id thread, engine::access want, thread_locks& object, lock_count& count);
    // False: release() knows more.
    bool release_fast(engine::owner_id thread, engine::access level, boost::system::error_code& result);
    // What threads locked through that object. True: there was something.
    bool release_all_fast(const thread_locks& object);

    // --- for owners, from any thread
    struct answer {
        enum class what : std::uint8_t { granted, waits, refused } now = what::refused;
        std::shared_ptr<local_face> face;  // granted: may be that of an earlier acquisition; waits: to cancel it
        engine::refusal why = {};
    };
    // `waits`: the waiter is told. It must live until then.
    answer acquire(engine::owner_id owner, engine::access want, engine::patience limit, local_waiter& waiter);
    answer upgrade(local_face& reading, engine::patience limit, local_waiter& waiter);
    void cancel(local_face& waiting, errc why);
    boost::system::error_code release(local_face& mine, engine::access level);
    boost::system::error_code downgrade(local_face& mine);
    std::uint64_t token_of(local_face& mine);
    // Of an owner. False: it has nothing here.
    bool release(engine::owner_id owner, engine::access level, boost::system::error_code& result);
    // Those levels of that local grant, if the owner still has it. True: it has.
    bool release_levels(engine::owner_id owner, std::uint64_t serial, unsigned exclusive, unsigned shared);
    bool is_held_by(engine::owner_id owner);
    void abandon(engine::owner_id owner);
    void give_back();
    // Keeps nothing any more, whatever lock objects there are.
    void close();
    instant last_use();

    // A thread that waits drives the loop.
    void driver_comes() noexcept { ++drivers_; }
    void driver_goes() noexcept { --drivers_; }
    // Other options, same name.
    bool has_siblings() const noexcept { return has_siblings_.load(std::memory_order_relaxed); }
    void has_a_sibling() noexcept { has_siblings_.store(true, std::memory_order_relaxed); }

    // --- inside the section
    void on_timer();
    bool has_driver() const noexcept { return drivers_.load() > 0; }
    // That request has been granted.
    void add_hold(std::uint64_t ask, const std::shared_ptr<kept_hold>& hold, const engine::local::hold_facts& facts);
    std::shared_ptr<kept_hold> find_hold(std::uint64_t number);
    // It is not known from then on.
    std::shared_ptr<kept_hold> take_hold(std::uint64_t number);
    bool has_hold() const noexcept { return newest_ != nullptr; }
    bool is_in_use(std::uint64_t hold);
    // An event of the machine: event(machine, now, effects). Not from within another one.
    template <typename Event>
    void hear(Event event) {
        with_machine([&](instant now) {
            event(machine_, now, effects_);
            return 0;
        });
    }

private:
    using effect = engine::local::effect;
    using guard = std::unique_lock<std::mutex>;

    // What was told while the mutex was held, and is passed on without it.
    struct messages {
        struct one {
            effect::kind what;
            std::shared_ptr<local_face> who;
            std::shared_ptr<const engine::refusal> why;
        };
        std::vector<one> all;
        bool enters = false;  // there is something for the section
    };

    void run() override;
    void sort(messages& out);
    void pass_on(messages& out);
    template <typename Event>
    std::invoke_result_t<Event, instant> with_machine(Event event) {
        messages out;
        guard held(mutex_);
        const bool is_open = close_fast_path();
        // Read when the mutex is held: a thread that slept before it must not believe in what has run out since.
        const instant now = boot_now();
        auto result = event(now);
        sort(out);
        if (is_open) open_fast_path(now);
        held.unlock();
        pass_on(out);
        return result;
    }
    answer answer_to(const std::shared_ptr<local_face>& wish, const engine::local::outcome& said);
    engine::refusal describe(errc why);
    struct adopted {
        fast_users::user user;
        std::uint64_t serial = 0;
    };
    adopted adopt(engine::owner_id owner);
    void adopt_this_thread(engine::owner_id owner);
    bool close_fast_path();
    void open_fast_path(instant now);
    std::shared_ptr<kept_hold> known_hold(std::uint64_t number);

    core& core_;
    const lock_definition lock_;
    fast_users fast_;
    std::mutex mutex_;

    // --- guarded by mutex_
    engine::local::local_grants machine_;
    engine::local::effects effects_;  // of the event that is under way
    std::deque<effect> todo_;         // for the section
    bool is_entering_ = false;
    std::unordered_map<std::uint64_t, std::shared_ptr<kept_hold>> holds_;
    std::shared_ptr<kept_hold> newest_;
    std::size_t objects_ = 1;
    bool is_closed_ = false;
    std::uint64_t last_serial_ = 0;
    engine::local::tallies counted_;

    std::atomic<unsigned> drivers_ = 0;
    std::atomic<bool> has_siblings_ = false;

    // --- inside the section only
    hold_requests requests_;
    std::shared_ptr<kept_lock> alive_;  // while it is entering
};

}  // namespace holdfast::api
