// The server's side of read-write locks, watched: every script call, with the lock before and after.
//
// The rules, each for one lock:
//   - hash, leases and grants agree after every script; nobody writes while another holds; every key expires
//   - nothing is taken from a living holder by another's script, and nothing but what was asked by its own
//   - an answer says what is there; who is told to hold it has a full lease
//   - tokens grow in the order of grants
//   - nobody who stood in line without any trouble is passed over against the lock's preference
//   - who could be let in is let in, by every script that serves the line, and soon; who was let in enters soon
//   - two upgraders never wait for each other
//   - a hold that was missing in the hash, so that another program may have come and gone, is never renewed again, and
//     its release is not told that all was well
// Holders of other programs live as long as the expiry that they set; what such an expiry does to our hash, if it is
// shorter than our leases, is excused (R33).
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
    /// Another program has written the hash; its holds last until then (server ms, or no_expiry).
    void foreign_wrote(server& at, const wire::lock_keys& keys, std::int64_t until_ms);
    /// One of its holders has left, and tells nobody.
    void foreign_released(server& at, const wire::lock_keys& keys, wire::preference prefer);
    /// Our leases and the foreign program's holds on this lock may have been cut short.
    void excuse(const std::string& lock) { locks_[lock].tampered = true; }
    bool is_excused(const std::string& lock) { return locks_[lock].tampered; }
    /// Leases or grants were destroyed: even ours may meet.
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
        std::string upgrading;  // acquire: the token of what is to be upgraded
    };
    struct waiter {
        instant arrived;
        std::uint64_t number = 0;
        milliseconds interval{0};
        instant opens_at = never;  // when it could be let in, as far as could be seen
    };
    struct admission {
        std::string id;
        char wants;
    };
    struct lock_record {
        rw_state before;
        std::map<std::string, waiter, std::less<>> known;  // an upgrade under another name than the acquisition
        std::map<std::string, step, std::less<>> last_step;
        std::set<std::string, std::less<>> released;  // wholly, at some time
        std::set<std::string, std::less<>> leaving;   // have asked for that, be it in vain: their slot was moving
        std::set<std::pair<std::string, std::uint64_t>> missing;  // by id and token: were not in the hash at some time
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
    void check_answer(const call& asked, const rw_state& now, const value& answer);
    void note_missing(lock_record& lock, const rw_state& seen);
    void check_told(const call& asked, const lock_record& lock, const value& answer);
    void check_grants(const call& asked, lock_record& lock, const rw_state& now);
    void check_token(lock_record& lock, const rw_state& now, const std::string& id);
    void check_order(const call& asked, const lock_record& lock, const rw_state& now, const admission& granted);
    void expect_entry(const call& asked, const rw_state& then, const std::string& id);
    void check_upgraders(const call& asked, const lock_record& lock, const rw_state& now);

    // rw_line_watch.cpp
    void check_slow(const call& asked, lock_record& lock);
    void update_queue(const call& asked, lock_record& lock, const rw_state& now);
    void check_not_left_waiting(const call& asked, const lock_record& lock, const rw_state& now);
    void update_opening_times(lock_record& lock, const rw_state& now, std::string_view prefer);
    instant opens_at(const lock_record& lock, const rw_state& now, std::size_t rank, std::string_view prefer);

    checks& checks_;
    call asked_;  // by the script that runs
    std::map<std::string, lock_record, std::less<>> locks_;
};

/// True if of two who wait the first is to be let in first, by the lock's preference.
struct turn {
    char wants;
    std::uint64_t number;
};
bool comes_before(const turn& first, const turn& second, std::string_view prefer);

}  // namespace holdfast::sim
