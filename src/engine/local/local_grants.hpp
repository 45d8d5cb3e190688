// Local grants: one client's hold on a lock, dealt out to the owners inside its process without asking a server.
//
// Sans-I/O: events and `now` in, effects out; no clock, thread or socket. The caller excludes concurrent calls. One
// machine per client, lock name and equal options.
//
// The hold is the client's. As long as nobody else wants the lock, it stays after its last local release for `keep`,
// and every local acquisition is a local grant. Once somebody else waits (`wanted`), those local waiters are served
// that waited already, then at most `passes` more, and no longer than the time bound; then the hold is released, and
// what waits still takes a new position in the server's queue before that.
//
//   ask -> hold (current) -> in use <-> unused -> released
//                   \-> wanted -> ... -> released as soon as it is unused
//                   \-> retiring: a newer hold is current; released as soon as it is unused
//
// Invariants:
//  (1) A local grant is given only while the hold is fresh: a third of the lease is left, a proof from the present link
//      is younger than half of it, and a number for its token is there. Otherwise the hold is renewed first. The
//      first local grant is what the hold was asked for: as a plain lock, it needs validity, and the proof at any age.
//  (2) All local grants of one hold exclude each other as modes do; different holds exclude each other at the server.
//  (3) No token is given twice, and none above the ceiling that the server answered.
//  (4) Re-entrance is never delayed and never counted as a pass.
//  (5) A lost hold is released when its last user has, as one that is not shared: until then they may work on.
//  (6) Who waits has a position at the server, or the current hold will serve it.
//
// **The fast path.** While nobody waits and nobody else wants the lock, the outside may give out local grants by
// itself, of one mode: exclusive ones of a mutex, one at a time; shared ones of a read-write lock. Such a user has no
// claim, and the machine does not see it. Before each event the outside counts in the users that there are, and
// afterwards it may go on by itself with what fast_path() allows. Somebody who has to wait, or to be told, gets a claim
// then.
#pragma once

#include "engine/local/positions.hpp"

#include <span>

namespace holdfast::engine::local {

// What the outside may give out by itself, until the next event.
struct fast_terms {
    std::uint64_t hold = 0;
    instant until{};  // not to be given out from then on
};

struct outcome {
    enum class verdict : std::uint8_t { granted, reentered, waits, refused };

    verdict what;
    claim* mine = nullptr;  // granted, reentered: the claim that has the level now
    errc why = errc::busy;  // refused
};

class local_grants {
public:
    explicit local_grants(settings chosen) : settings_(chosen), waiting_(settings_), positions_(settings_) {}
    local_grants(const local_grants&) = delete;
    local_grants& operator=(const local_grants&) = delete;

    // --- requests of owners
    // `waits`: answered later by the effect granted or refused.
    outcome acquire(claim& wish, instant now, effects& out);
    // `reading` is to write as well. The same answers; `waiter` stands for the request.
    outcome upgrade(claim& reading, claim& waiter, instant now, effects& out);
    // Gives up one level. Returns errc::lost, errc::held_other_mode or nothing.
    std::optional<errc> release(claim& mine, access level, instant now, effects& out);
    // An exclusive level becomes a shared one.
    std::optional<errc> downgrade(claim& mine, instant now, effects& out);
    // Ends a wait with that refusal. No effect on a claim that does not wait.
    void cancel(claim& waiter, errc why, instant now, effects& out);
    // Takes a number where the claim has none yet.
    fencing_token token_of(claim& mine, instant now, effects& out);
    // The owner will never release. False: it holds nothing here.
    claim* abandon(owner_id owner, instant now, effects& out);
    // The claim of that owner that holds, or has held and lost; null if none.
    claim* find(owner_id owner) noexcept;

    // --- answers
    // Returns the number of the new hold.
    std::uint64_t acquired(std::uint64_t ask, const hold_facts& facts, instant now, effects& out);
    void ask_refused(std::uint64_t ask, std::shared_ptr<const refusal> why, instant now, effects& out);
    void upgraded(std::uint64_t hold, fencing_token token, fencing_token ceiling, instant now, effects& out);
    void upgrade_refused(std::uint64_t hold, std::shared_ptr<const refusal> why, instant now, effects& out);

    // --- what happens to a hold
    void on_validity(std::uint64_t hold, instant until, instant now, effects& out);
    void on_proof(std::uint64_t hold, instant at, instant now, effects& out);
    void on_ceiling(std::uint64_t hold, fencing_token ceiling, instant now, effects& out);
    void on_wanted(std::uint64_t hold, instant now, effects& out);
    void on_lost(std::uint64_t hold, instant now, effects& out);
    void on_timer(instant now, effects& out);

    // --- the fast path
    access fast_mode() const noexcept {
        return settings_.kind == lock_kind::mutex ? access::exclusive : access::shared;
    }
    // Nothing: every acquisition is to be told.
    std::optional<fast_terms> fast_path(instant now) const noexcept;
    // So many use that hold without a claim; it was used last at `used`.
    void count_in(std::uint64_t hold, unsigned users, instant used) noexcept;
    // They are not seen from now on.
    void count_out(std::uint64_t hold) noexcept;
    // One that was counted in has released. Returns errc::lost or nothing.
    std::optional<errc> release_fast(std::uint64_t hold, instant now, effects& out);
    // One that was counted in gets a claim, with so many levels.
    void adopt(std::uint64_t hold, claim& mine, unsigned levels);

    // --- the lock objects
    // None is left: nothing is kept any more; what is in use goes on.
    void close(instant now, effects& out);
    void reopen() noexcept { closing_ = false; }
    // Releases what is unused.
    void give_back(instant now, effects& out);

    // --- questions
    bool holds_any() const noexcept { return !holds_.empty(); }
    bool is_used() const noexcept { return !users_.empty(); }
    bool is_used(std::uint64_t hold) const noexcept;
    bool is_idle() const noexcept {
        return holds_.empty() && positions_.empty() && waiting_.empty() && !positions_.anybody_tries();
    }
    bool has_position() const noexcept { return !positions_.empty(); }
    instant unused_since() const noexcept { return current_ ? current_->unused_since : never; }
    const tallies& counted() const noexcept { return counted_; }
    // Asserts what must always be true. For tests.
    void check() const;

private:
    using list = boost::intrusive::list<claim>;

    held* find_hold(std::uint64_t number) noexcept;
    outcome reenter(claim& mine, claim& wish, instant now, effects& out);
    void wait(claim& wish, effects& out);
    void unlink(claim& waiter) noexcept;
    void refuse(claim& waiter, std::shared_ptr<const refusal> why, effects& out);
    void refuse(claim& waiter, errc why, effects& out);
    void end_lost(claim& mine) noexcept;
    void end_upgrade_of(const claim& reading, instant now, effects& out);
    void step_upgrade(held& h, instant now, effects& out);
    void finish_upgrade(held& h, effects& out, instant now);

    void settle(instant now, effects& out);
    void serve(instant now, effects& out);
    void want_renewal(held& h, instant now, effects& out);
    void give_back_unused(instant now, effects& out);
    bool stays(const held& h, instant now) const noexcept;
    void downgrade_if_only_read(held& h, instant now, effects& out);
    void drop(held& h, effect::kind how, effects& out);
    void arm(instant now, effects& out);
    void arm_at(instant when, effects& out);

    const settings settings_;
    std::vector<std::unique_ptr<held>> holds_;  // one, rarely two: the current one is the last
    held* current_ = nullptr;
    list users_;
    list lost_;  // hold nothing, and do not know it yet
    waiting_claims waiting_;
    positions positions_;
    std::uint64_t last_hold_ = 0;
    bool closing_ = false;
    instant armed_ = never;
    tallies counted_;
};

}  // namespace holdfast::engine::local
