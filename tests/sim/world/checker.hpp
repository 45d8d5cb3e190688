// Checks a scenario and reports the first violation of a rule.
//
// The checker sees the server's side: every script call, with the lock, its queue and its fence before and after. And
// it sees the clients' side: who believes to hold what, until when. It trusts the bookkeeping of neither side.
//
// Rules:
//   - Two holders of conflicting modes never believe at the same instant. After a fault outside the promise (lost data,
//     clock set forward) the later grant must at least have the larger token.
//   - What the holders of a semaphore believe to have is never more than its limit.
//   - After a hold has expired, nobody else acquires the lock before its delay is over.
//   - Tokens grow in the order of grants.
//   - A waiter without trouble is not overtaken by a later one. With several servers: not by one that came half a
//     second later.
//   - A free lock is granted soon while anybody waits. A waiter that receives a hand-over acquires soon.
//   - A lock is never taken from a living holder, and never granted to a waiter that is gone or has given up.
//   - A lock that foreign clients share is left free again and again, however many waiters there are, and no waiter
//     acquires it during such a gap.
//   - A marked hold that nobody uses is given back as soon as its client can know that somebody waits.
//   - What a caller is told of a release or a renewal is what the server did.
//   - No automatic renewal fails without a reason. No caller receives an error that is not about the lock.
// The rules of read-write locks on the server's side are in rw_checker, those of semaphores in semaphore_checker,
// those of notes in note_checker.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/hold.hpp"
#include "wire/keys.hpp"
#include "world/checks.hpp"
#include "world/note_checker.hpp"
#include "world/rw_checker.hpp"
#include "world/semaphore_checker.hpp"

namespace holdfast::sim {

/// What one holder believes, from acquired() until its end.
struct belief {
    std::string lock;
    std::string id;
    std::uint64_t token = 0;  // 0: a foreign client's
    instant until{};
    engine::access mode = engine::access::exclusive;
    milliseconds lease{0};     // 0: a foreign client's
    milliseconds delay{0};     // nobody else acquires the lock for this long after the hold has expired
    instant asked{};           // when its owner asked for it
    instant since{};           // when its owner learnt of it
    instant kept_until{};      // the latest time at which servers still keep the hold if its owner does not release it
    std::int64_t permits = 0;  // of a semaphore, whose holders are told as if they read
    std::int64_t limit = 0;    // of a semaphore: as it was declared
    bool over = false;
};

class checker final : public checks, public script_watcher {
public:
    /// With one server the checker sees everything. With several, only what the clients conclude counts.
    enum class view : std::uint8_t { of_the_server, of_beliefs };
    checker(timeline& time, view seen)
        : checks(time), seen_(seen), read_write_(*this), semaphores_(*this), notes_(*this) {}

    // --- faults outside the promise
    void data_lost(bool mistrusted);
    void clock_jumped(nanoseconds by);
    void waiters_corrupted() { excused.corrupted = true; }
    rw_checker& read_write() { return read_write_; }
    semaphore_checker& semaphores() { return semaphores_; }
    note_checker& notes() { return notes_; }

    // --- the clients' side
    std::shared_ptr<belief> believes(belief fresh);
    void extended(const std::shared_ptr<belief>& held, instant until);
    /// A reader has upgraded.
    void upgraded(belief& held, std::uint64_t token, instant asked);
    void lost_without_reason(const belief& held);
    /// A client has a hold that it may deal out to its users: these say themselves what they believe. Their numbers are
    /// those of the hold's block, and grow with every use, whoever has it.
    void hold_acquired(const std::string& id, std::uint64_t token);
    std::shared_ptr<belief> believes_locally(belief fresh);
    void upgraded_locally(belief& held, instant asked);
    void numbered(belief& held, std::uint64_t token);
    /// What callers are told of a release or a renewal agrees with what the scripts did since they asked.
    void told_released(const std::string& id, instant asked, std::optional<errc> why_not);
    void told_renewed(const std::string& id, instant asked);
    /// A request was refused for this reason.
    void told(const std::string& who, errc why);
    void wrongly_refused(const std::string& lock, const std::string& who, errc why);
    /// A client believes to hold it, or has lost it by its own cautious clock and not released it.
    bool may_be_taken(const std::string& lock);
    std::uint64_t cycles() const { return cycles_; }
    /// Commands beyond two per cycle that the actors cause: upgrades and downgrades.
    std::uint64_t changes() const { return changes_; }
    void expect_change() { ++changes_; }

    /// With several servers, where tickets order the queue: the actors that have waited for a lock since then.
    std::function<std::vector<std::string>(const std::string& lock, instant since)> waiting_since;

    // --- the server's side
    void foreign_acquired(const std::string& lock, instant until);
    void foreign_released(const std::string& lock);
    /// A foreign client shortened its expiry. The waiters that are in it now may change places, and nobody overtakes
    /// them.
    void queue_may_expire(const std::string& lock);
    void before_script(server& at, const words& command) override;
    void after_script(const words& command, const value& answer) override;

private:
    enum class step { acquire, release, release_alone, renew };
    struct waiter {
        instant arrived;
        std::uint64_t number;
        milliseconds interval;
        instant asked{};  // of the last poll
    };
    struct lock_state {
        std::string name;
        std::string holder;
        std::string fence;
        std::vector<std::string> queue;
        std::map<std::string, waiter, std::less<>> known;
        std::map<std::string, step, std::less<>> last_step;
        std::set<std::string, std::less<>>
            leaving;  // have asked for a release, perhaps in vain because the slot was moving
        std::set<std::string, std::less<>> shuffled;  // were in a queue that expired, or might have
        double highest_token = 0;
        instant free_from{};              // when the present hold ends, or ended, by itself
        std::int64_t gap_end_us = 0;      // of the gap before the present step
        std::int64_t taken_since_us = 0;  // by the server's clock: the key has not been free since then
    };
    struct call {
        step what;
        std::string lock;
        std::string queue;
        std::string waiters;
        std::string fence;
        std::string gap;  // empty: no foreign client shares the lock, or the caller never yields
        std::string id;
        milliseconds lease;
        milliseconds interval;
        bool brings_numbers = false;  // renew
    };

    static bool has_one_key(step what);
    static bool is_among_us(const belief& one) { return one.lease != milliseconds(0); }
    std::shared_ptr<belief> remember(belief fresh);
    void watch_keeper(const lock_state& state);
    call read(std::string_view script, const words& command) const;
    std::vector<call> read_all(std::string_view script, const words& command) const;
    void after_call(const call& asked, const value& answer);
    std::string get(const std::string& key);
    void check_overlap(const belief& fresh);
    void check_permits(const belief& fresh);
    void check_delay(const belief& fresh);
    bool may_overlap(const belief& fresh, const belief& other) const;
    bool is_in_a_block(const belief& fresh) const;
    void check_made(const belief& fresh);
    void check_growth(const belief& fresh);
    void check_arrival(const belief& fresh);
    void check_step(const call& asked, const lock_state& was, const std::string& holder);
    void check_slow(const lock_state& was);
    void check_turns(const call& asked, lock_state& state, const std::string& holder);
    void granted(const call& asked, lock_state& state, const std::string& id);
    void check_token(lock_state& state, const std::string& id);
    void check_order(const lock_state& state, const std::string& id);
    void expect_entry(const std::string& lock, const std::string& id);
    void update_queue(const call& asked, lock_state& state);
    bool calm(const lock_state& state, const std::string& id) const;

    // The highest token of any holder, and of any writer.
    struct tokens {
        std::uint64_t any = 0;
        std::uint64_t exclusive = 0;
    };

    const view seen_;
    std::map<std::string, tokens, std::less<>> believed_;
    rw_checker read_write_;
    semaphore_checker semaphores_;
    note_checker notes_;
    std::map<std::string, lock_state, std::less<>> locks_;
    std::map<std::string, std::vector<std::shared_ptr<belief>>> beliefs_;
    std::set<std::string, std::less<>> holders_;  // ids that ever acquired
    std::uint64_t cycles_ = 0;
    std::uint64_t changes_ = 0;
};

}  // namespace holdfast::sim
