// Local grants of a kept lock: threads on the fast path and at the machine, and others that want the lock. One believer
// at a time, everybody is served, and the hold is given back when nobody uses it.
//
// The edge between fast path and machine is that of src/api/locks/kept_lock.cpp (with_machine, acquire_fast,
// release_fast), written again without a client, as in tests/sim/world/keeper.
#include HOLDFAST_SOURCE_UNDER_TEST

#include "engine/local/local_grants.cpp"
#include "engine/local/held.cpp"
#include "engine/local/positions.cpp"
#include "engine/local/waiting_claims.cpp"

#include <vector>

#include "threads/registry.hpp"

namespace holdfast::explored {
namespace {

using namespace std::chrono_literals;
using api::fast_users;
using api::lock_count;
using interleaving::require;
namespace local = engine::local;

struct thread_claim final : local::claim {
    bool is_answered = false;
};

class kept {
public:
    explicit kept(engine::lock_kind kind) : machine_(settings(kind)), fast_(kind, 10) {
        thread_claim first;
        first.owner = engine::owner_id{99};
        acquire(first);
        release(first);
        passed_ = 0;
    }

    // --- as kept_lock
    bool acquire_fast(engine::owner_id thread, lock_count& count) { return fast_.acquire(thread, object_, count); }
    bool acquire_fast(engine::owner_id thread, api::thread_locks& by, lock_count& count) {
        return fast_.acquire(thread, by, count);
    }
    // The levels that it has without a claim are the claim's from now on.
    void adopt(thread_claim& mine) {
        with_machine([&] {
            if (!fast_.knows(mine.owner)) return;
            const fast_users::user known = fast_.take(mine.owner);
            machine_.adopt(known.hold, mine, known.levels);
        });
    }
    void destroy(const api::thread_locks& object) {
        with_machine([&] {
            for (const fast_users::user& each : fast_.take_all(object)) {
                machine_.release_fast(each.hold, boot_now(), effects_);
                each.count->local -= each.levels;
            }
        });
    }
    bool release_fast(engine::owner_id thread) {
        const auto said = fast_.release(thread);
        if (said != fast_users::answer::ask_machine) return said == fast_users::answer::done;
        bool is_done = false;
        with_machine([&] {
            const fast_users::user one = fast_.take(thread);
            if (one.levels == 0) return;
            machine_.release_fast(one.hold, boot_now(), effects_);
            one.count->local -= one.levels;
            is_done = true;
        });
        return is_done;
    }
    void acquire(thread_claim& wish) {
        with_machine([&] {
            const auto said = machine_.acquire(wish, boot_now(), effects_);
            require(said.what != local::outcome::verdict::refused, "nobody is refused");
            wish.is_answered = said.what == local::outcome::verdict::granted;
        });
        interleaving::step_when([&wish] { return wish.is_answered; });
    }
    void reenter(thread_claim& wish) {
        with_machine([&] {
            const auto said = machine_.acquire(wish, boot_now(), effects_);
            require(said.what == local::outcome::verdict::reentered, "its owner holds it");
        });
    }
    void release(thread_claim& mine) {
        with_machine([&] { machine_.release(mine, mine.want, boot_now(), effects_); });
    }
    void others_want_it() {
        with_machine([&] { machine_.on_wanted(number_, boot_now(), effects_); });
    }

    // --- what is believed
    void enter(engine::access level) {
        if (level == engine::access::exclusive) {
            require(inside_ == 0, "two believe that they hold the lock");
        } else {
            require(!is_written_, "somebody reads while another writes");
        }
        is_written_ = level == engine::access::exclusive;
        ++inside_;
        interleaving::step();
        --inside_;
        is_written_ = false;
    }
    unsigned released_holds() const { return passed_; }
    void check() const { machine_.check(); }

private:
    static local::settings settings(engine::lock_kind kind) {
        return {.lease = 30s, .keep = 10s, .passes = 1, .kind = kind};
    }

    template <class Event>
    void with_machine(Event event) {
        const std::lock_guard held(mutex_);
        bool was_open = fast_.is_asked_for();
        if (fast_.is_open()) {
            const fast_users::tally known = fast_.close();
            machine_.count_in(known.hold, known.users, known.used);
            was_open = true;
        }
        event();
        carry_out();
        if (!was_open) return;
        const auto terms = machine_.fast_path(boot_now());
        if (!terms) return;
        machine_.count_out(terms->hold);
        fast_.open(*terms);
    }

    // A server with one hold at a time, which answers as soon as it can: what is explored here are the threads of the
    // client.
    void carry_out() {
        for (;;) {
            if (!asks_.empty() && !has_hold_) admit();
            if (effects_.empty()) return;
            const local::effect next = effects_.front();
            effects_.erase(effects_.begin());
            switch (next.what) {
                case local::effect::kind::granted:
                    static_cast<thread_claim*>(next.who)->is_answered = true;
                    break;
                case local::effect::kind::ask:
                    asks_.push_back(next);
                    break;
                case local::effect::kind::release:
                    require(inside_ == 0, "the hold is given back while somebody uses it");
                    ++passed_;
                    has_hold_ = false;
                    break;
                case local::effect::kind::renew:
                    machine_.on_ceiling(next.number, token_ += 900, boot_now(), effects_);
                    break;
                default:
                    break;
            }
        }
    }

    void admit() {
        const local::effect first = asks_.front();
        asks_.erase(asks_.begin());
        has_hold_ = true;
        token_ += 1000;
        number_ = machine_.acquired(first.number,
                                    {.mode = first.mode,
                                     .valid_until = boot_now() + 30s,
                                     .proved_at = boot_now(),
                                     .token = token_,
                                     .ceiling = token_ + 900},
                                    boot_now(), effects_);
    }

    std::mutex mutex_;
    local::local_grants machine_;
    fast_users fast_;
    api::thread_locks object_;
    local::effects effects_;
    local::effects asks_;
    bool has_hold_ = false;
    engine::fencing_token token_ = 0;
    std::uint64_t number_ = 0;
    unsigned inside_ = 0;
    bool is_written_ = false;
    unsigned passed_ = 0;
};

constexpr auto writes = engine::access::exclusive;
constexpr auto reads = engine::access::shared;
constexpr auto mutex_kind = engine::lock_kind::mutex;
constexpr auto rw_kind = engine::lock_kind::read_write;

void lock_and_unlock(kept& subject, std::uint64_t number, engine::access level, engine::lock_kind kind) {
    const engine::owner_id me{number};
    lock_count count = std::make_shared<api::locked_levels>();
    const bool may_be_fast = level == engine::access::shared || kind == engine::lock_kind::mutex;
    if (may_be_fast && subject.acquire_fast(me, count)) {
        subject.enter(level);
        require(subject.release_fast(me), "who is noted can release");
        return;
    }
    thread_claim mine;
    mine.owner = me;
    mine.want = level;
    subject.acquire(mine);
    subject.enter(level);
    subject.release(mine);
}

// Locks by one object and again by another one, unlocks by the first, and destroys that.
void lock_by_two_objects(kept& subject, std::uint64_t number) {
    const engine::owner_id me{number};
    lock_count count = std::make_shared<api::locked_levels>();
    api::thread_locks goes, stays;
    if (!subject.acquire_fast(me, goes, count)) return lock_and_unlock(subject, number, writes, mutex_kind);
    lock_count again = count;
    if (subject.acquire_fast(me, stays, again)) {
        subject.release_fast(me);
        subject.destroy(goes);
        subject.enter(writes);
        require(subject.release_fast(me), "the level of the other object is there");
        return;
    }
    thread_claim mine;
    mine.owner = me;
    subject.adopt(mine);
    thread_claim second;
    second.owner = me;
    subject.reenter(second);
    subject.release(mine);
    subject.destroy(goes);
    subject.enter(writes);
    subject.release(mine);
}

enum class others { silent, wait };

void world(engine::lock_kind kind, const std::vector<engine::access>& threads, others outside) {
    kept subject(kind);
    std::vector<int> running;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        running.push_back(interleaving::start([&, i] { lock_and_unlock(subject, i + 1, threads[i], kind); }));
    }
    if (outside == others::wait) subject.others_want_it();
    for (const int each : running) interleaving::join(each);
    require(outside == others::silent || subject.released_holds() > 0, "a wanted hold is given back");
    subject.check();
}

const interleaving::registered here({
    {"local grants", HOLDFAST_VARIANT, "mutex: two threads",
     [] {
         world(mutex_kind, {writes, writes}, others::silent);
     },
     4},
    {"local grants", HOLDFAST_VARIANT, "mutex: two threads, and others want it",
     [] {
         world(mutex_kind, {writes, writes}, others::wait);
     },
     3},
    {"local grants", HOLDFAST_VARIANT, "mutex: a thread with two lock objects, one of which is destroyed, and another",
     [] {
         kept subject(mutex_kind);
         const int first = interleaving::start([&] { lock_by_two_objects(subject, 1); });
         const int second = interleaving::start([&] { lock_and_unlock(subject, 2, writes, mutex_kind); });
         interleaving::join(first);
         interleaving::join(second);
         subject.check();
     },
     2},
    {"local grants", HOLDFAST_VARIANT, "read-write: two readers and a writer",
     [] {
         world(rw_kind, {reads, reads, writes}, others::silent);
     },
     1},
    {"local grants", HOLDFAST_VARIANT, "read-write: a reader and a writer, and others want it",
     [] {
         world(rw_kind, {reads, writes}, others::wait);
     },
     2},
});

}  // namespace
}  // namespace holdfast::explored
