// One hold of the client, as the machine of local grants sees it: who uses it, its numbers, whether it is fresh, and
// how long it may be passed on while somebody else waits.
//
// Invariants:
//  (1) No number is taken twice, and none above the ceiling that the server answered.
//  (2) At most one user writes, and then nobody else uses it.
#pragma once

#include "engine/local/claim.hpp"

namespace holdfast::engine::local {

struct settings {
    milliseconds lease{30000};
    std::chrono::nanoseconds keep{0};
    unsigned passes = 0;
    lock_kind kind = lock_kind::mutex;
    preference prefer = preference::arrival;
    unsigned max_depth = 100'000;
};

// What the engine told with a hold.
struct hold_facts {
    access mode = access::exclusive;
    instant valid_until{};
    instant proved_at{};
    fencing_token token = 0;
    fencing_token ceiling = 0;
    bool wanted = false;
    bool marked = true;  // others can ask for it
};

struct tallies {
    std::uint64_t grants = 0;      // from a hold that the client had already
    std::uint64_t passes = 0;      // of these: while somebody else waited
    std::uint64_t give_backs = 0;  // holds released because somebody else wanted them
};

// What the server was asked for: cancelled is a request whose waiter is gone, and that is not answered yet.
enum class upgrade_request : std::uint8_t { none, asked, cancelled };

struct held {
    held(const settings& chosen, std::uint64_t number, const hold_facts& facts, instant now);

    // --- may it be granted?
    bool is_wanted() const noexcept { return wanted_at != never; }
    // When it must not be passed on any more, once it is wanted.
    instant bound() const noexcept;
    // By mode. The order among those who wait is another question.
    bool fits(access want) const noexcept;
    bool in_bound(const claim& c, instant now) const noexcept;
    // Whether a local grant may be given without another renewal.
    bool may_grant(access want, instant now) const noexcept;
    bool is_fresh(access want, instant now) const noexcept;
    // Not fresh from then on.
    instant fresh_until() const noexcept;
    // How many of those who wait will be served before it is released.
    std::size_t can_serve(std::size_t waiting, instant now) const noexcept;
    // Why its users refuse a try; nothing: only the server knows.
    std::optional<errc> why_not_now(access want, bool writer_waits) const noexcept;

    // --- its numbers
    bool has_number(access want) const noexcept;
    bool is_half_used() const noexcept;
    // It has no number left, and no renewal brings one.
    bool is_used_up(access want) const noexcept { return !marked && !has_number(want); }
    fencing_token take_number(const claim& mine);
    void may_use_up_to(fencing_token last_one) noexcept;

    // --- its users
    void grant(claim& c, instant now, tallies& counted);
    void stops_writing(claim& c) noexcept;
    void is_unused(instant now) noexcept;
    // Only reads from now on.
    void make_shared() noexcept;
    // A renewal has answered, one that was asked for here or the engine's own.
    void is_answered(instant now) noexcept;

    const settings& chosen;
    const std::uint64_t number;
    access mode;
    instant valid_until;
    instant proved_at;
    fencing_token last;         // the last number that was taken
    fencing_token ceiling;      // the last one that may be taken
    fencing_token block;        // how many there were when the ceiling was told
    fencing_token readers = 0;  // the token that the present readers share; 0: none has asked
    unsigned users = 0;
    unsigned writers = 0;  // of these; at most one
    unsigned fast = 0;     // of these: without a claim
    unsigned passes = 0;
    std::size_t early = 0;  // waiters that waited already when it became wanted
    instant wanted_at = never;
    instant unused_since;
    claim* upgrader = nullptr;  // waits for the other readers, or for the server
    upgrade_request upgrade = upgrade_request::none;
    bool marked;               // otherwise no renewal brings numbers
    bool was_granted = false;  // the first local grant is what it was asked for
    bool retiring = false;
    bool orphaned = false;  // an owner is gone that will never release
    bool renewing = false;  // asked for, and not answered yet
    instant renew_from{};   // the last renewal was in vain: none before that
    bool lost = false;      // its users have the rest of its validity for stopping work
};

}  // namespace holdfast::engine::local
