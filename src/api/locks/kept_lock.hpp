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
#include "api/locks/hold_face.hpp"
#include "api/locks/lock_definition.hpp"
#include "api/operations/blocking.hpp"
#include "base/recycled.hpp"
#include "engine/local/local_grants.hpp"

#include <holdfast/detail/completion.hpp>

#include <deque>
#include <functional>
#include <unordered_map>

namespace holdfast::api {

class kept_hold;
class kept_lock;

class local_face;

// Hears how a local wait ends. Told once, outside the mutex.
class local_waiter {
public:
    // Before it waits, under the mutex. True: its answer comes from a server, and somebody should drive the loop.
    virtual void will_wait(bool /*for_server*/) {}
    virtual void granted(std::shared_ptr<local_face> face) = 0;
    virtual void refused(const engine::refusal& why) = 0;

protected:
    ~local_waiter() = default;
};

// A local grant, or the wish for one: the face of its leases, and the claim that the machine knows.
class local_face final : public hold_face {
public:
    explicit local_face(const std::shared_ptr<kept_lock>& of);

    local_face* local() noexcept override { return this; }
    std::uint64_t token() noexcept override;
    std::string id() const override;
    instant valid_until() const noexcept override;

    kept_lock& lock() const noexcept { return *lock_; }
    // The hold of the client that it was granted from.
    const std::shared_ptr<kept_hold>& hold() const noexcept { return hold_; }
    std::uint64_t serial() const noexcept { return serial_; }
    void tell_lost() { hold_face::on_lost(errc::lost); }

private:
    friend class kept_lock;
    struct claim final : engine::local::claim {
        explicit claim(local_face& whole) : face(whole) {}
        local_face& face;
    };
    static local_face& of(engine::local::claim& one) noexcept { return static_cast<claim&>(one).face; }

    const std::shared_ptr<kept_lock> lock_;
    std::uint64_t serial_ = 0;
    claim claim_;
    std::shared_ptr<kept_hold> hold_;
    std::atomic<std::uint64_t> taken_token_ = 0;
    local_waiter* waiter_ = nullptr;
    std::shared_ptr<local_face> self_;    // while the machine knows the claim
    std::shared_ptr<local_face> target_;  // of an upgrade that waits
};

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

private:
    friend class kept_hold;
    friend class local_face;
    class ask;
    class upgrade_request;
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
        std::shared_ptr<local_face> over;  // let go of without the mutex
        bool enters = false;               // there is something for the section
    };

    void run() override;
    void sort(messages& out);
    void pass_on(messages& out);
    template <typename Event>
    std::invoke_result_t<Event, instant> with_machine(Event event);
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
    void carry_out(const effect& what);
    void begin_ask(const effect& what);
    void end_ask(std::uint64_t number);
    void on_acquired(const ask& answered, engine::hold& held);
    void on_refused(const ask& answered, const engine::refusal& why);
    void begin_upgrade(const effect& what);
    void make_less(const effect& what);
    void end_hold(const effect& what);
    std::shared_ptr<kept_hold> find_hold(std::uint64_t number);
    static void release_last(core& where, engine::hold& held, engine::access level, instant now);

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
    std::unordered_map<std::uint64_t, std::unique_ptr<ask>> asks_;
    std::unordered_map<std::uint64_t, std::unique_ptr<upgrade_request>> upgrades_;  // by the number of the hold
    std::shared_ptr<kept_lock> alive_;                                              // while it is entering
};

// The client's hold, as the engine tells of it.
class kept_hold final : public hold_face {
public:
    kept_hold(core& where, std::weak_ptr<kept_lock> whole) : hold_face(where), whole_(std::move(whole)) {}

    std::uint64_t number = 0;  // of the machine; set once it knows the hold
    void forget() { hold_face::on_gone(); }

private:
    void on_validity(instant until) override;
    void on_lost(errc why) override;
    void on_wanted() override;
    void on_ceiling(engine::fencing_token last) override;
    void on_proof(instant at) override;
    bool is_in_use() override;
    template <typename Event>
    void tell(Event event);

    const std::weak_ptr<kept_lock> whole_;
};

// A thread that waits for a local grant, or for an upgrade of one.
class blocking_local final : private local_waiter {
public:
    explicit blocking_local(std::shared_ptr<kept_lock> where) : lock_(std::move(where)) {}

    // Returns the face, or null and why().
    std::shared_ptr<local_face> acquire(engine::owner_id owner, engine::access want, engine::patience limit,
                                        std::stop_token stop);
    std::shared_ptr<local_face> upgrade(const std::shared_ptr<local_face>& reading, engine::patience limit,
                                        std::stop_token stop);
    const engine::refusal& why() const noexcept { return why_; }

private:
    void will_wait(bool for_server) override;
    void granted(std::shared_ptr<local_face> face) override {
        face_ = std::move(face);
        end();
    }
    void refused(const engine::refusal& why) override {
        why_ = why;
        end();
    }
    void end();
    std::shared_ptr<local_face> wait(kept_lock::answer said, std::stop_token stop);

    enum state : std::uint32_t { open, over };
    const std::shared_ptr<kept_lock> lock_;
    bool drives_ = false;
    std::shared_ptr<local_face> face_;
    loop::wait driven_;
    futex_word state_{open};
    engine::refusal why_;
};

// One that ends in a handler.
class async_local final : public std::enable_shared_from_this<async_local>, private local_waiter {
public:
    using completion = detail::completion<boost::system::error_code, lease>;

    async_local(std::shared_ptr<core> where, std::shared_ptr<kept_lock> lock, mode kind,
                std::unique_ptr<completion> handler)
        : core_(std::move(where)), lock_(std::move(lock)), kind_(kind), handler_(std::move(handler)) {}

    // `why_not` may be null.
    void acquire(engine::owner_id owner, engine::patience limit, std::stop_token stop, refusal* why_not);
    void upgrade(const std::shared_ptr<local_face>& reading, engine::patience limit);

private:
    void granted(std::shared_ptr<local_face> face) override { finish(std::move(face), nullptr); }
    void refused(const engine::refusal& why) override { finish(nullptr, &why); }
    void begin(std::stop_token stop);
    void cancel();
    void answered(kept_lock::answer said);
    void finish(std::shared_ptr<local_face> face, const engine::refusal* why);

    const std::shared_ptr<core> core_;
    const std::shared_ptr<kept_lock> lock_;
    const mode kind_;
    refusal* why_not_ = nullptr;
    std::unique_ptr<completion> handler_;
    std::mutex mutex_;  // between the answer and a cancellation
    std::shared_ptr<local_face> waits_;
    bool is_cancelled_ = false;
    bool is_over_ = false;
    std::shared_ptr<async_local> self_;
    std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace holdfast::api
