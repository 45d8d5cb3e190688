// Checks the server's side of read-write locks: every script call, with the state of the lock before and after.
//
// Rules, for each lock:
//   - Hash, leases and grants agree after every script. No writer holds beside another holder. Every key expires.
//   - A script takes nothing from other living holders, and from its caller only what the caller asked for.
//   - An answer agrees with the state. An acquire or renewal that succeeds leaves a full lease.
//   - Tokens grow in the order of grants.
//   - A waiter without trouble is not overtaken against the lock's preference.
//   - Every script that serves the queue admits the waiters that can be admitted. They acquire soon.
//   - Two upgraders never wait for each other.
//   - A hold that was missing in the hash is never renewed again, and its release does not report success. A foreign
//     client may have held the lock in between.
// Foreign holders live as long as the expiry that they set. If that expiry is shorter than our leases, its effect on
// our holds is excused (R33).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "world/checks.hpp"
#include "world/rw_state.hpp"

namespace holdfast::sim {

class rw_checker {
public:
    explicit rw_checker(checks& all) : checks_(all) {}

    void before_script(std::string_view script, const words& command);
    void after_script(std::string_view script, const words& command, const value& answer);

    void data_lost();
    void clock_jumped(nanoseconds by);
    /// A foreign client has written the hash; its holds last until then (server ms, or no_expiry).
    void foreign_wrote(server& at, const wire::lock_keys& keys, std::int64_t until_ms);
    /// A foreign client has released. It does not notify anybody.
    void foreign_released(server& at, const wire::lock_keys& keys, wire::preference prefer);
    /// Our leases and foreign holds on this lock may have been cut short.
    void excuse(const std::string& lock) { locks_[lock].tampered = true; }
    bool is_excused(const std::string& lock) { return locks_[lock].tampered; }
    /// Leases or grants were destroyed: even two of our holders may conflict.
    void corrupted(const std::string& lock) { locks_[lock].corrupted = true; }
    bool is_corrupted(const std::string& lock) { return locks_[lock].corrupted; }

private:
    enum class step : std::uint8_t { acquire, release, renew, renew_alone, cancel };
    struct call {
        step what = step::acquire;
        wire::lock_keys keys;
        std::string id;
        std::string prefer;
        char wants = 0;         // acquire
        milliseconds lease{0};  // acquire, renew
        milliseconds interval{0};
        std::string token;      // release
        std::string left_over;  // release
        std::string upgrading;  // acquire: the token of the hold to upgrade
    };
    struct waiter {
        instant arrived;
        std::uint64_t number = 0;
        milliseconds interval{0};
        instant asked{};           // the last poll
        instant opens_at = never;  // when it can be admitted, as far as the state shows
    };
    struct admission {
        std::string id;
        char wants;
    };
    struct lock_record {
        rw_state before;
        std::map<std::string, waiter, std::less<>>
            known;  // an upgrade has another key than the acquisition of the same id
        std::map<std::string, step, std::less<>> last_step;
        std::set<std::string, std::less<>> released;  // completely, at some time
        std::set<std::string, std::less<>>
            leaving;  // have asked for a release, perhaps in vain because the slot was moving
        std::set<std::pair<std::string, std::uint64_t>> missing;  // by id and token: missing in the hash at some time
        std::uint64_t highest_token = 0;
        std::int64_t foreign_until_ms = 0;
        bool tampered = false;
        bool corrupted = false;
    };

    static call read(std::string_view script, const words& command);
    static std::string key_of(const rw_state::waiter& who) { return who.wants == 'u' ? who.id + "+" : who.id; }
    static const waiter* find(const lock_record& lock, const rw_state::waiter& who);
    bool calm(const lock_record& lock, const rw_state::waiter& who) const;
    bool gave_up(const lock_record& lock, const rw_state::waiter& who) const;
    bool may_have_unknown_position(const call& asked, const lock_record& lock) const;
    bool upgrades_nothing(const rw_state& state, const rw_state::waiter& who) const;
    bool is_foreign_there(const rw_state& state, const lock_record& lock) const;
    bool revived_beside_foreign_holder(const lock_record& lock) const;

    void check_agreement(const call& asked, const lock_record& lock, const rw_state& now);
    void check_exclusion(const call& asked, const rw_state& now);
    void check_expiry(const call& asked, const lock_record& lock, const rw_state& now);
    void check_others(const call& asked, const lock_record& lock, const rw_state& now);
    void check_foreign(const call& asked, const lock_record& lock, const rw_state& now);
    void check_own(const call& asked, const lock_record& lock, const rw_state& now, const value& answer);
    void check_release(const call& asked, const lock_record& lock, const rw_state& now);
    void check_queue_left(const call& asked, const rw_state& now);
    void check_answer(const call& asked, const rw_state& was, const rw_state& now, const value& answer);
    void note_missing(lock_record& lock, const rw_state& seen);
    void note_done(const call& asked, lock_record& lock, const rw_state& now, const value& answer);
    void check_told(const call& asked, const lock_record& lock, const value& answer);
    void check_grants(const call& asked, lock_record& lock, const rw_state& now);
    void check_token(lock_record& lock, const rw_state& now, const std::string& id);
    void check_order(const call& asked, const lock_record& lock, const rw_state& now, const admission& granted);
    void expect_entry(const call& asked, const rw_state& then, const std::string& id);
    void check_upgraders(const call& asked, const lock_record& lock, const rw_state& now);

    // rw_queue_checks.cpp
    void check_slow(const call& asked, lock_record& lock);
    void update_queue(const call& asked, lock_record& lock, const rw_state& now);
    void check_not_left_waiting(const call& asked, const lock_record& lock, const rw_state& now);
    void update_opening_times(lock_record& lock, const rw_state& now, std::string_view prefer);
    bool may_be_handed_to(const lock_record& lock, const rw_state::waiter& who) const;
    instant opens_at(const lock_record& lock, const rw_state& now, std::size_t rank, std::string_view prefer);

    checks& checks_;
    call asked_;  // the script call in progress
    std::map<std::string, lock_record, std::less<>> locks_;
};

/// True if the lock's preference admits the first of two waiters before the second.
struct turn {
    char wants;
    std::uint64_t number;
};
bool comes_before(const turn& first, const turn& second, std::string_view prefer);

}  // namespace holdfast::sim
