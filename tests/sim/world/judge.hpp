// Watches a simulated day and says the first thing that must not have happened.
//
// It sees two sides. The server's: every script call, with the lock, its line and its fence before and after.
// The clients': who believes to hold what, until when. Neither side's own bookkeeping is trusted; the rules
// are checked on what was seen:
//   - never two believers at one instant; where the day had a fault outside the promise (data lost, clock set
//   forward),
//     the later grant must at least have the larger token
//   - tokens grow in the order of grants
//   - nobody who stood in line without any trouble is passed over by one who came later
//   - a lock that is free while somebody waits is given out soon; one that was handed over is entered soon
//   - the lock is never taken from a living holder, nor given to one that is gone or has given up
//   - no automatic renewal fails without a reason
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scripts/names.hpp"
#include "world/server.hpp"

namespace holdfast::sim {

/// One holder's belief, from acquired() until it ends.
struct belief {
    std::string lock;
    std::string id;
    std::uint64_t token = 0;  // 0: a foreign program's
    instant until{};
    bool over = false;
};

class judge final : public script_watcher {
public:
    explicit judge(timeline& time) : time_(time) {}

    /// Whose client had no trouble since then, and has none now.
    std::function<bool(std::string_view client, instant since)> calm_since;
    std::function<void(const std::string&)> trace;
    server* watched = nullptr;

    void fail(std::string what);
    bool failed() const { return !verdict_.empty(); }
    const std::string& verdict() const { return verdict_; }

    // --- what the day did outside the promise
    void data_lost(bool mistrusted);
    void clock_jumped(nanoseconds by);
    void waiters_vandalized() { vandalized_ = true; }

    // --- the clients' side
    std::shared_ptr<belief> believes(belief fresh);
    void extended(belief& held, instant until);
    void lost_without_reason(const belief& held);
    std::uint64_t cycles() const { return cycles_; }

    // --- the server's side
    void foreign_took(const std::string& lock, instant until);
    void foreign_left(const std::string& lock);
    void before_script(const words& command) override;
    void after_script(const words& command, const value& answer) override;

private:
    enum class step { acquire, release, renew };
    struct waiter {
        instant arrived;
        std::uint64_t number;
        milliseconds interval;
    };
    struct lock_state {
        std::string holder;
        std::string fence;
        std::vector<std::string> line;
        std::map<std::string, waiter, std::less<>> known;
        std::map<std::string, step, std::less<>> last_step;
        double highest_token = 0;
        instant free_from{};  // when the present hold ends by itself, or ended
    };
    struct call {
        step what;
        std::string lock;
        std::string queue;
        std::string fence;
        std::string id;
        milliseconds interval;
    };

    call read(const words& command) const;
    std::string get(const std::string& key);
    void check_overlap(const belief& fresh);
    void check_step(const call& asked, const lock_state& was, const std::string& holder);
    void check_slow(const lock_state& was);
    void granted(const call& asked, lock_state& state, const std::string& id);
    void check_token(const call& asked, lock_state& state, const std::string& id);
    void check_order(const lock_state& state, const std::string& id);
    void expect_entry(const std::string& lock, const std::string& id);
    void update_line(const call& asked, lock_state& state);
    bool calm(const lock_state& state, const std::string& id) const;

    timeline& time_;
    std::string verdict_;
    std::map<std::string, lock_state, std::less<>> locks_;
    std::map<std::string, std::vector<std::shared_ptr<belief>>> beliefs_;
    std::set<std::string, std::less<>> entered_;
    std::uint64_t next_number_ = 1;
    std::uint64_t cycles_ = 0;
    bool overlap_excused_ = false;
    bool data_lost_ = false;
    bool set_back_ = false;
    bool jumped_ = false;
    bool vandalized_ = false;
};

}  // namespace holdfast::sim
