// Watches a simulated scenario and says the first thing that must not have happened.
//
// It sees two sides. The server's: every script call, with the lock, its line and its fence before and after.
// The clients': who believes to hold what, until when. Neither side's own bookkeeping is trusted; the rules
// are checked on what was seen:
//   - never two believers of conflicting modes at one instant; where the scenario had a fault outside the promise (data
//     lost, clock set forward), the later grant must at least have the larger token
//   - tokens grow in the order of grants
//   - nobody who stood in line without any trouble is passed over by one who came later; where several servers vote, by
//     one who came half a second later
//   - a lock that is free while somebody waits is given out soon; one that was handed over is entered soon
//   - the lock is never taken from a living holder, nor given to one that is gone or has given up
//   - a lock that other programs share is left free for a moment again and again, however many of ours wait, and nobody
//     of ours comes in meanwhile
//   - no automatic renewal fails without a reason, and nobody is told of an error that is not about the lock
// What is special to read-write locks on the server's side is in rw_checker.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/hold.hpp"
#include "wire/keys.hpp"
#include "world/checks.hpp"
#include "world/rw_checker.hpp"

namespace holdfast::sim {

/// One holder's belief, from acquired() until it ends.
struct belief {
    std::string lock;
    std::string id;
    std::uint64_t token = 0;  // 0: a foreign program's
    instant until{};
    engine::access mode = engine::access::exclusive;
    milliseconds lease{0};  // 0: a foreign program's
    instant asked{};        // when its owner began to want it
    instant since{};        // when its owner learnt of it
    instant kept_until{};   // so long, at most, servers keep what its owner does not give back
    bool over = false;
};

class checker final : public checks, public script_watcher {
public:
    /// Of one server everything is seen; where several vote, what matters is what their clients make of it.
    enum class view : std::uint8_t { of_the_server, of_beliefs };
    checker(timeline& time, view seen) : checks(time), seen_(seen), read_write_(*this) {}

    // --- what the scenario did outside the promise
    void data_lost(bool mistrusted);
    void clock_jumped(nanoseconds by);
    void waiters_corrupted() { excused.corrupted = true; }
    rw_checker& read_write() { return read_write_; }

    // --- the clients' side
    std::shared_ptr<belief> believes(belief fresh);
    void extended(const std::shared_ptr<belief>& held, instant until);
    /// A reader writes as well, from now on.
    void upgraded(belief& held, std::uint64_t token, instant asked);
    void lost_without_reason(const belief& held);
    /// Why a request came to nothing.
    void told(const std::string& who, errc why);
    void wrongly_refused(const std::string& lock, const std::string& who, errc why);
    /// Somebody believes to have it, or has lost it by its own cautious reckoning and not given it back.
    bool may_be_taken(const std::string& lock);
    std::uint64_t cycles() const { return cycles_; }
    /// Commands beyond two for each cycle that the people's doings explain: upgrades, and holding less.
    std::uint64_t changes() const { return changes_; }
    void expect_change() { ++changes_; }

    /// Where several servers vote, and lines are by tickets: who waits for a lock in vain since then.
    std::function<std::vector<std::string>(const std::string& lock, instant since)> waiting_since;

    // --- the server's side
    void foreign_acquired(const std::string& lock, instant until);
    void foreign_released(const std::string& lock);
    void before_script(server& at, const words& command) override;
    void after_script(const words& command, const value& answer) override;

private:
    enum class step { acquire, release, release_alone, renew };
    struct waiter {
        instant arrived;
        std::uint64_t number;
        milliseconds interval;
        instant asked{};  // last
    };
    struct lock_state {
        std::string name;
        std::string holder;
        std::string fence;
        std::vector<std::string> queue;
        std::map<std::string, waiter, std::less<>> known;
        std::map<std::string, step, std::less<>> last_step;
        std::set<std::string, std::less<>> leaving;  // have asked for a release, be it in vain: its slot was moving
        double highest_token = 0;
        instant free_from{};              // when the present hold ends by itself, or ended
        std::int64_t gap_end_us = 0;      // of the gap that ran before the present step
        std::int64_t taken_since_us = 0;  // by the server's clock: the key was not free since
    };
    struct call {
        step what;
        std::string lock;
        std::string queue;
        std::string fence;
        std::string gap;  // empty: no other program shares the lock, or the caller never yields
        std::string id;
        milliseconds lease;
        milliseconds interval;
    };

    static bool has_one_key(step what);
    call read(std::string_view script, const words& command) const;
    std::string get(const std::string& key);
    void check_overlap(const belief& fresh);
    bool may_overlap(const belief& fresh, const belief& other) const;
    void check_made(const belief& fresh);
    void check_growth(const belief& fresh);
    void check_arrival(const belief& fresh);
    void check_step(const call& asked, const lock_state& was, const std::string& holder);
    void check_slow(const lock_state& was);
    void check_turns(const call& asked, lock_state& state, const std::string& holder);
    void granted(const call& asked, lock_state& state, const std::string& id);
    void check_token(const call& asked, lock_state& state, const std::string& id);
    void check_order(const lock_state& state, const std::string& id);
    void expect_entry(const std::string& lock, const std::string& id);
    void update_queue(const call& asked, lock_state& state);
    bool calm(const lock_state& state, const std::string& id) const;

    // The highest token that anybody ever believed in, and anybody who wrote.
    struct tokens {
        std::uint64_t any = 0;
        std::uint64_t exclusive = 0;
    };

    const view seen_;
    std::map<std::string, tokens, std::less<>> believed_;
    rw_checker read_write_;
    std::map<std::string, lock_state, std::less<>> locks_;
    std::map<std::string, std::vector<std::shared_ptr<belief>>> beliefs_;
    std::set<std::string, std::less<>> holders_;  // ids that ever entered
    std::uint64_t cycles_ = 0;
    std::uint64_t changes_ = 0;
};

}  // namespace holdfast::sim
