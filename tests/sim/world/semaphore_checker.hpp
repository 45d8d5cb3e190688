// Checks the server's side of semaphores: every script call, with the state before and after.
//
// Rules, for each semaphore:
//   - Leases, grants and the sum of the permits agree after every script that knows all keys. Every key expires.
//   - No grant makes the sum greater than the limit.
//   - A script takes nothing from other living holders, and from its caller only what the caller asked for.
//   - An answer agrees with the state. An acquire or renewal that succeeds leaves a full lease.
//   - Tokens grow in the order of grants.
//   - A waiter without trouble is not overtaken, however many permits it wants.
//   - Every script that serves the queue admits the first waiter if its permits are free. It acquires soon.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "wire/keys.hpp"
#include "world/checks.hpp"

namespace holdfast::sim {

struct semaphore_state {
    struct grant {
        std::int64_t permits = 0;  // 0: malformed
        std::uint64_t token = 0;
    };
    struct waiter {
        std::string id;
        std::int64_t permits = 0;  // 0: malformed
    };

    bool exists = false;
    std::int64_t declared = 0;
    std::int64_t limit = 0;
    std::int64_t out = 0;
    std::string version;
    std::int64_t expires_ms = no_expiry;

    std::map<std::string, std::int64_t, std::less<>> leases;  // by id, the deadline in server ms
    std::map<std::string, grant, std::less<>> grants;
    std::int64_t leases_expire_ms = no_expiry;
    std::int64_t grants_expire_ms = no_expiry;

    std::vector<waiter> queue;
    std::int64_t now_ms = 0;

    /// The permits of this id by a living lease and a grant; 0: none.
    std::int64_t held(const std::string& id) const;
    std::uint64_t token_of(const std::string& id) const;
    /// Of all living holders, at that server time.
    std::int64_t sum_at(std::int64_t ms) const;
    bool has_waiter(const std::string& id) const;
};

semaphore_state read_semaphore_state(server& from, const wire::lock_keys& keys);

class semaphore_checker {
public:
    explicit semaphore_checker(checks& all) : checks_(all) {}

    void before_script(std::string_view script, const words& command);
    void after_script(std::string_view script, const words& command, const value& answer);

    void data_lost();
    /// The limit has changed, or somebody wrote into the keys.
    void changed(const std::string& lock);
    /// By an operator: what it granted, and the limit, are looked at.
    void resized(server& at, const wire::lock_keys& keys);
    /// The greatest limit that ever counted, as far as the scripts showed; 0: none was seen.
    std::int64_t greatest_limit(const std::string& lock) { return locks_[lock].greatest_limit; }

private:
    enum class step : std::uint8_t { acquire, release, renew };
    struct call {
        step what = step::acquire;
        wire::lock_keys keys;
        std::string id;
        std::int64_t permits = 0;  // acquire
        milliseconds lease{0};     // acquire, renew
        milliseconds interval{0};  // acquire
        std::string token;         // release
    };
    struct waiter {
        instant arrived;
        std::uint64_t number = 0;
        milliseconds interval{0};
        instant opens_at = never;  // when it can be admitted as the first, as far as the state shows
        instant polled{};
    };
    struct lock_record {
        semaphore_state before;
        std::map<std::string, waiter, std::less<>> known;
        std::map<std::string, step, std::less<>> last_step;
        std::set<std::string, std::less<>> leaving;
        std::uint64_t highest_token = 0;
        std::int64_t greatest_limit = 0;
    };

    static call read(std::string_view script, const words& command);
    bool calm(const lock_record& lock, const std::string& id) const;
    bool gave_up(const lock_record& lock, const std::string& id) const;
    void check_agreement(const call& asked, const semaphore_state& now);
    void check_expiry(const call& asked, const semaphore_state& now);
    void check_others(const call& asked, const lock_record& lock, const semaphore_state& now);
    void check_own(const call& asked, const lock_record& lock, const semaphore_state& now, const value& answer);
    void check_grants(const call& asked, lock_record& lock, const semaphore_state& now);
    void check_order(const call& asked, const lock_record& lock, const semaphore_state& now, const std::string& id);
    bool may_be_handed_to(const call& asked, const lock_record& lock, std::string_view id) const;
    void expect_entry(const call& asked, const semaphore_state& then, const std::string& id);
    void check_slow(const call& asked, lock_record& lock);
    void check_not_left_waiting(const call& asked, const lock_record& lock, const semaphore_state& now);
    void update_queue(const call& asked, lock_record& lock, const semaphore_state& now);
    instant opens_at(const semaphore_state& now) const;

    checks& checks_;
    call asked_;  // the script call in progress
    std::map<std::string, lock_record, std::less<>> locks_;
};

}  // namespace holdfast::sim
