#include "world/rw_checker.hpp"

#include <algorithm>

#include "wire/hold_id.hpp"

namespace holdfast::sim {
namespace {

// Scripts measure a foreign expiry in whole ms, by two readings of the clock.
constexpr std::int64_t blurred_ms = 5;

bool at_least(char now, char before) {
    return (!has_read(before) || has_read(now)) && (!has_write(before) || has_write(now));
}

std::uint64_t fence_of(const rw_state& state) {
    std::uint64_t token = 0;
    std::from_chars(state.fence.data(), state.fence.data() + state.fence.size(), token);
    return token;
}

bool has_foreign_holder(const rw_state& state) {
    if (!state.writer.empty() && !wire::is_ours(state.writer)) return true;
    return std::any_of(state.readers.begin(), state.readers.end(),
                       [](const auto& reader) { return !wire::is_ours(reader.first); });
}

}  // namespace

bool comes_before(const turn& first, const turn& second, std::string_view prefer) {
    if (second.wants == 'u') return false;
    if (first.wants == 'u') return true;
    if (first.wants == second.wants || prefer == "arrival") return first.number < second.number;
    return first.wants == (prefer == "writers" ? 'w' : 'r');
}

// EVALSHA sha1 keys lock queue waiters fence leases grants [gap [notes]] id retention prefer ..., or 3 lock leases
// grants id lease
rw_checker::call rw_checker::read(std::string_view script, const words& command) {
    call out;
    // With raw naming the side keys follow from the lock key alone.
    out.keys = wire::make_keys(wire::lock_name(std::string(command[3])), wire::key_naming::raw, "");
    if (script == "rw/renew_alone") {
        out.what = step::renew_alone;
        out.id = command[6];
        out.lease = to_ms(command[7]);
        return out;
    }
    const auto given = command.begin() + 3 + std::stoi(std::string(command[2]));
    out.id = given[0];
    out.prefer = given[2];
    if (script == "rw/acquire") {
        out.wants = given[3][0];
        out.lease = to_ms(given[4]);
        out.interval = to_ms(given[8]);
        out.upgrading = given[10];
    } else if (script == "rw/renew") {
        out.what = step::renew;
        out.lease = to_ms(given[3]);
    } else if (script == "rw/release") {
        out.what = step::release;
        out.token = given[3];
        out.left_over = given[4];
    } else {
        out.what = step::cancel;
    }
    return out;
}

void rw_checker::data_lost() {
    for (auto& [name, lock] : locks_) {
        lock.missing.clear();  // the data may be those of before
        lock.last_step.clear();
        for (auto& [id, who] : lock.known) who.opens_at = never;
    }
}

void rw_checker::clock_jumped(nanoseconds) {
    for (auto& [name, lock] : locks_) {
        for (auto& [id, who] : lock.known) who.opens_at = never;
    }
}

void rw_checker::before_script(std::string_view script, const words& command) {
    asked_ = read(script, command);
    const call& asked = asked_;
    lock_record& lock = locks_[asked.keys.lock()];
    lock.before = read_rw_state(*checks_.watched, asked.keys);
    // An older snapshot may restore a foreign hold without expiry.
    if (checks_.excused.data_lost && lock.before.expires_ms == no_expiry && has_foreign_holder(lock.before))
        lock.foreign_until_ms = no_expiry;
    if (asked.what != step::renew_alone) check_slow(asked, lock);
}

void rw_checker::after_script(std::string_view script, const words&, const value& answer) {
    const call& asked = asked_;
    if (checks_.trace) {
        std::string more = asked.what == step::acquire ? std::string(" wants ") + asked.wants : "";
        if (asked.what == step::release) more = " token " + asked.token + " leaves '" + asked.left_over + "'";
        checks_.trace("  " + std::string(script) + " " + asked.keys.lock() + " by " + asked.id + more + ": " +
                      answer.to_string());
    }
    lock_record& lock = locks_[asked.keys.lock()];
    if (asked.what == step::release && asked.left_over.empty()) lock.leaving.insert(asked.id);
    if (answer.is_error() && !is_sent_again(answer)) checks_.fail(std::string(script) + " failed: " + answer.text);
    if (answer.is_error()) return;
    note_missing(lock, lock.before);
    check_told(asked, lock, answer);
    const rw_state now = read_rw_state(*checks_.watched, asked.keys);
    // renew_alone removes nobody: the next script that knows all keys removes dead holders.
    if (asked.what != step::renew_alone) check_agreement(asked, lock, now);
    check_exclusion(asked, now);
    // renew_alone changes nothing if it finds something that needs a script with all keys.
    const bool left_alone = asked.what == step::renew_alone && answer.items[0].integer == 3;
    if (!left_alone) check_expiry(asked, lock, now);
    check_others(asked, lock, now);
    check_foreign(asked, lock, now);
    check_own(asked, lock, now, answer);
    check_answer(asked, lock.before, now, answer);
    note_done(asked, lock, now, answer);
    if (asked.what == step::renew_alone) return;
    check_queue_left(asked, now);
    if (asked.what != step::renew) lock.last_step[asked.id] = asked.what;
    if (asked.what == step::acquire) checks_.note_acquire(asked.id, asked.lease);
    if (asked.what == step::release && !asked.left_over.empty()) lock.last_step[asked.id] = step::acquire;
    if (asked.what == step::release && asked.left_over.empty()) lock.released.insert(asked.id);
    check_grants(asked, lock, now);
    check_upgraders(asked, lock, now);
    update_queue(asked, lock, now);
    check_not_left_waiting(asked, lock, now);
}

void rw_checker::note_done(const call& asked, lock_record& lock, const rw_state& now, const value& answer) {
    const bool said_done = !answer.items.empty() && answer.items[0].integer == 1;
    checks::steps_done& did = checks_.done[asked.id];
    const bool renews = asked.what == step::renew || asked.what == step::renew_alone;
    if (renews && said_done && now.held(asked.id) != 0) did.renewed = checks_.now();
    if (asked.what == step::release && now.held(asked.id) == 0) {
        did.left = checks_.now();
        // The release of a lost hold reports none.
        if (lock.before.held(asked.id) != 0 && !lock.before.is_lost(asked.id)) did.released = checks_.now();
    }
    const auto found = checks_.blocks.find(asked.id);
    // One that served the queue may have made another grant; see check_token(). While a slot moves the fence may be
    // gone.
    const bool is_same_grant = lock.before.token_of(asked.id) == now.token_of(asked.id);
    if (renews && said_done && is_same_grant && has_write(now.held(asked.id)) && found != checks_.blocks.end()) {
        found->second.last = std::max(found->second.last, fence_of(now));
        lock.highest_token = std::max(lock.highest_token, found->second.last);
    }
    // Whoever is first in the queue and writes waits for all of them.
    if (now.queue.empty() || now.queue[0].wants != 'w') return;
    for (const auto& [id, ends] : now.leases) {
        if (wire::mark_of(id) == wire::mark::none) continue;
        checks_.expect_give_back(asked.keys.lock(), id, [this, keys = asked.keys, id = id] {
            const rw_state then = read_rw_state(checks_.server_of(keys.lock()), keys);
            return then.held(id) != 0 && !then.queue.empty() && then.queue[0].wants == 'w';
        });
    }
}

const rw_checker::waiter* rw_checker::find(const lock_record& lock, const rw_state::waiter& who) {
    const auto found = lock.known.find(key_of(who));
    return found == lock.known.end() ? nullptr : &found->second;
}

bool rw_checker::calm(const lock_record& lock, const rw_state::waiter& who) const {
    const waiter* const known = find(lock, who);
    return known != nullptr && !lock.leaving.contains(who.id) && !checks_.may_be_forgotten(who.id) &&
           checks_.calm_since(wire::client_of(who.id), known->arrived) &&
           checks_.settled_since(asked_.keys.lock()) <= known->arrived;
}

bool rw_checker::gave_up(const lock_record& lock, const rw_state::waiter& who) const {
    const auto last = lock.last_step.find(who.id);
    return last != lock.last_step.end() &&
           (last->second == step::release || (who.wants == 'u' && last->second == step::cancel));
}

// True if the id may have a queue position that its client does not know of: an older snapshot restored it and lost the
// hold, or a late copy of an acquire ran. A complete release or a cancelled upgrade removes any position of its id.
bool rw_checker::may_have_unknown_position(const call& asked, const lock_record& lock) const {
    const bool leaves = asked.what == step::cancel || (asked.what == step::release && asked.left_over.empty());
    return checks_.excused.data_lost || (!leaves && lock.released.contains(asked.id));
}

// A client that has lost its read hold knows it, and does not ask for the upgrade any more.
bool rw_checker::upgrades_nothing(const rw_state& state, const rw_state::waiter& who) const {
    return who.wants == 'u' &&
           (!has_read(state.held(who.id)) || state.is_lost(who.id) || checks_.lost.contains(who.id));
}

void rw_checker::note_missing(lock_record& lock, const rw_state& seen) {
    for (const auto& [id, ends] : seen.leases) {
        if (id != "foreign" && seen.is_lost(id)) lock.missing.insert({id, seen.token_of(id)});
    }
}

// Nobody receives the answer to a late copy of an acquire.
void rw_checker::check_told(const call& asked, const lock_record& lock, const value& answer) {
    if (asked.what == step::acquire || answer.items.empty() || answer.items[0].integer != 1) return;
    if (lock.missing.contains({asked.id, lock.before.token_of(asked.id)}))
        checks_.fail(asked.id + " was not told that its hold was missing for a while");
}

// True if a foreign hold has not expired as far as the scripts can tell: they read the clock twice, and the ms may end
// in between.
bool rw_checker::is_foreign_there(const rw_state& state, const lock_record& lock) const {
    if (lock.foreign_until_ms != no_expiry && lock.foreign_until_ms + 1 < state.now_ms) return false;
    return has_foreign_holder(state);
}

// For each of our holders the hash says what its lease and grant say, and the counts are right.
void rw_checker::check_agreement(const call& asked, const lock_record&, const rw_state& now) {
    const auto wrong = [&](const std::string& what) {
        checks_.fail("hash and leases of " + asked.keys.lock() + " disagree after a script by " + asked.id + ": " +
                     what);
    };
    std::int64_t sum = 0;
    for (const auto& [id, count] : now.readers) {
        sum += count;
    }
    if (now.rcount != (now.readers.empty() ? "" : std::to_string(sum))) wrong("rcount is " + now.rcount);
    if (now.exists && now.mode != (now.writer.empty() ? "read" : "write")) wrong("mode is " + now.mode);
    if (now.exists && now.writer.empty() && now.readers.empty()) wrong("the hash has no holder");
    if (now.writer.empty() != now.wcount.empty()) wrong("wcount is " + now.wcount);
    if (checks_.excused.corrupted) return;
    for (const auto& [id, count] : now.readers) {
        if (wire::is_ours(id) && !has_read(now.held(id))) wrong(id + " reads without a living lease and grant");
    }
    if (wire::is_ours(now.writer) && !has_write(now.held(now.writer)))
        wrong(now.writer + " writes without a living lease and grant");
    for (const auto& [id, ends] : now.leases) {
        if (id == "foreign") continue;
        const char held = now.held(id);
        if (held == 0) wrong(id + " has a lease but no grant");
        // Beside a foreign writer, a lost hold has only its lease.
        const bool is_kept_out = now.is_lost(id) && !now.writer.empty() && !wire::is_ours(now.writer);
        if (held != 0 && now.in_hash(id) != held && !is_kept_out) wrong(id + " holds what is not in the hash");
    }
    for (const auto& [id, grant] : now.grants) {
        if (!now.leases.contains(id)) wrong(id + " has a grant but no lease");
    }
}

void rw_checker::check_exclusion(const call& asked, const rw_state& now) {
    if (now.writer.empty()) return;
    for (const auto& [id, count] : now.readers) {
        if (id != now.writer)
            checks_.fail(id + " reads " + asked.keys.lock() + " while " + now.writer + " writes, by " + asked.id);
    }
}

void rw_checker::check_expiry(const call& asked, const lock_record& lock, const rw_state& now) {
    if (!now.exists) return;
    const bool endless = is_foreign_there(now, lock) && lock.foreign_until_ms == no_expiry;
    if (now.expires_ms == no_expiry && !endless) checks_.fail(asked.keys.lock() + " does not expire");
    std::int64_t longest = 0;
    for (const auto& [id, ends] : now.leases) longest = std::max(longest, ends);
    if (longest == 0) return;
    // A foreign writer alone decides on the expiry of the hash.
    const bool is_theirs = !now.writer.empty() && !wire::is_ours(now.writer);
    if (now.expires_ms != no_expiry && now.expires_ms < longest && !is_theirs)
        checks_.fail(asked.keys.lock() + " expires before a lease ends, after a script by " + asked.id);
    if (now.leases_expire_ms < longest || (!now.grants.empty() && now.grants_expire_ms < longest))
        checks_.fail("leases or grants of " + asked.keys.lock() + " expire before a lease ends");
    // Without the hash such leases would look like those of a clock that is behind, and dead holders would revive.
    if (!checks_.excused.corrupted && now.leases_expire_ms - longest > 1)
        checks_.fail("leases of " + asked.keys.lock() + " outlive the last lease");
}

// A clock set back revives leases after a foreign client has acquired. The next script removes them, even a script of
// the former holder.
bool rw_checker::revived_beside_foreign_holder(const lock_record& lock) const {
    return checks_.excused.set_back && is_foreign_there(lock.before, lock);
}

void rw_checker::check_others(const call& asked, const lock_record& lock, const rw_state& now) {
    const rw_state& was = lock.before;
    if (lock.tampered || checks_.excused.corrupted || revived_beside_foreign_holder(lock)) return;
    for (const auto& [id, ends] : was.leases) {
        const char before = was.held(id);
        if (id == asked.id || before == 0) continue;
        const char after = now.held(id);
        const bool upgraded = before == 'r' && after == 'b' && now.token_of(id) != was.token_of(id);
        if (after != before && !upgraded) checks_.fail("what " + id + " held was changed by " + asked.id);
        if (after == before && now.token_of(id) != was.token_of(id))
            checks_.fail("the token of " + id + " was changed by " + asked.id);
        if (after != 0 && now.leases.at(id) < ends) checks_.fail("the lease of " + id + " was cut by " + asked.id);
    }
}

void rw_checker::check_foreign(const call& asked, const lock_record& lock, const rw_state& now) {
    const rw_state& was = lock.before;
    const bool lives = lock.foreign_until_ms == no_expiry || lock.foreign_until_ms > was.now_ms + blurred_ms;
    if (!lives || checks_.excused.data_lost || checks_.excused.corrupted) return;
    const auto gone = [&](const std::string& who) {
        checks_.fail("the foreign hold of " + who + " on " + asked.keys.lock() + " was ended by " + asked.id);
    };
    for (const auto& [id, count] : was.readers) {
        const auto found = now.readers.find(id);
        if (!wire::is_ours(id) && (found == now.readers.end() || found->second != count)) gone(id);
    }
    if (!was.writer.empty() && !wire::is_ours(was.writer) && now.writer != was.writer) gone(was.writer);
}

void rw_checker::check_own(const call& asked, const lock_record& lock, const rw_state& now, const value& answer) {
    const rw_state& was = lock.before;
    if (lock.tampered || checks_.excused.corrupted) return;
    const char before = was.held(asked.id);
    const char after = now.held(asked.id);
    if (after == 0 && revived_beside_foreign_holder(lock)) return;
    if (asked.what == step::release) return check_release(asked, lock, now);
    if (!at_least(after, before)) checks_.fail(asked.id + " lost what it held by its own request");
    const rw_state::waiter* const waited = was.find_waiter(asked.id);
    const bool upgrade_was_due = waited != nullptr && waited->wants == 'u' && before == 'r' && after == 'b';
    if (asked.what == step::acquire) {
        const bool another = asked.wants == 'u' && asked.upgrading != std::to_string(was.token_of(asked.id));
        // A copy of an earlier upgrade is answered "that hold is over". It has served the queue like every script, and
        // may have found that the present upgrade is due.
        const bool by_the_queue = upgrade_was_due && !answer.items.empty() && answer.items[0].integer == -1;
        if (another && before == 'r' && has_write(after) && !by_the_queue)
            checks_.fail("another hold was upgraded than " + asked.id + " meant");
        return;
    }
    // A renewal changes only the lease of its hold, unless the upgrade that it waits for was due. A cancellation
    // changes nothing.
    if (asked.what == step::renew && upgrade_was_due) return;
    // The renewal found other holders expired and its own queue position next.
    const bool position_was_due = before == 0 && waited != nullptr && after == waited->wants;
    if (asked.what == step::renew && position_was_due && may_have_unknown_position(asked, lock)) return;
    if (after != before || (before != 0 && now.token_of(asked.id) != was.token_of(asked.id)))
        checks_.fail("a renewal or cancellation by " + asked.id + " changed its grant");
}

void rw_checker::check_release(const call& asked, const lock_record& lock, const rw_state& now) {
    const rw_state& was = lock.before;
    const char before = was.held(asked.id);
    const char after = now.held(asked.id);
    const bool meant = asked.token == "0" || asked.token == std::to_string(was.token_of(asked.id));
    char due = before;
    if (meant && asked.left_over.empty()) due = 0;
    if (meant && asked.left_over == "r" && before != 0) due = 'r';
    if (meant && asked.left_over == "w" && has_write(before)) due = 'w';
    if (after == due && (due == 0 || now.token_of(asked.id) == was.token_of(asked.id))) return;
    // The script may have served the queue and its own upgrade with it: only a complete release leaves the queue.
    const rw_state::waiter* const waited = was.find_waiter(asked.id);
    if (waited != nullptr && waited->wants == 'u' && due == 'r' && after == 'b') return;
    const bool position_was_due = before == 0 && waited != nullptr && after == waited->wants;
    if (position_was_due && may_have_unknown_position(asked, lock)) return;
    checks_.fail(asked.id + " released something else than it meant");
}

// A complete release or a cancelled upgrade leaves the queue.
void rw_checker::check_queue_left(const call& asked, const rw_state& now) {
    const bool leaves = asked.what == step::cancel || (asked.what == step::release && asked.token == "0");
    if (leaves && now.find_waiter(asked.id) != nullptr) checks_.fail(asked.id + " gave up and is still in the queue");
}

void rw_checker::check_answer(const call& asked, const rw_state& was, const rw_state& now, const value& answer) {
    if (answer.items.empty() || answer.items[0].integer != 1) return;
    const std::string token = std::to_string(now.token_of(asked.id));
    const char held = now.held(asked.id);
    const auto wrong = [&](const std::string& what) { checks_.fail(asked.id + " received a wrong answer: " + what); };
    switch (asked.what) {
        case step::acquire:
            if (!(asked.wants == 'r' ? has_read(held) : has_write(held)) || answer.items.at(1).text != token)
                wrong("it does not have what it asked for");
            break;
        case step::renew:
        case step::renew_alone:
        case step::cancel:
            if (answer.items.at(1).text != std::string(1, held) || answer.items.at(2).text != token)
                wrong("it holds something else");
            break;
        case step::release:
            return;
    }
    if (asked.what != step::cancel && held != 0 && now.leases.at(asked.id) < was.now_ms + asked.lease.count())
        wrong("its lease is not full");
}

void rw_checker::check_grants(const call& asked, lock_record& lock, const rw_state& now) {
    const rw_state& was = lock.before;
    std::vector<std::pair<std::uint64_t, std::string>> fresh;
    for (const auto& [id, grant] : now.grants) {
        if (now.held(id) != 0 && (was.held(id) == 0 || was.token_of(id) != grant.token))
            fresh.emplace_back(grant.token, id);
    }
    std::sort(fresh.begin(), fresh.end());
    for (const auto& [token, id] : fresh) {
        if (checks_.trace) checks_.trace("  grant to " + id + " '" + now.held(id) + "' token " + std::to_string(token));
        check_token(lock, now, id);
        const rw_state::waiter* const waited = was.find_waiter(id);
        if (id == asked.id) {
            const bool due = waited != nullptr && (waited->wants == 'u' || may_have_unknown_position(asked, lock));
            if (asked.what != step::acquire && !due) checks_.fail(id + " was granted a hold that it did not ask for");
            const char waited_for = waited != nullptr ? waited->wants : 'u';
            check_order(asked, lock, now, {id, asked.what == step::acquire ? asked.wants : waited_for});
            if (waited != nullptr && calm(lock, *waited)) expect_entry(asked, now, id);
            continue;
        }
        if (waited == nullptr) {
            checks_.fail(id + " was granted a hold without waiting for it");
            continue;
        }
        check_order(asked, lock, now, {id, waited->wants});
        if (!may_be_handed_to(lock, *waited))
            checks_.fail("the lock was handed over to a waiter without subscription: " + id);
        if (!checks_.excused.data_lost && gave_up(lock, *waited))
            checks_.fail("the lock was handed over to a waiter that had given up: " + id);
        // A copy of a request may run later than a client listens for its id: then the lease ends the hold.
        if (calm(lock, *waited) && !lock.released.contains(id)) expect_entry(asked, now, id);
    }
    // Of a marked writer the fence is the last number, which may be greater.
    const bool has_block = !fresh.empty() && checks_.blocks.contains(fresh.back().second);
    if (!fresh.empty() && (has_block ? fence_of(now) < fresh.back().first : fence_of(now) != fresh.back().first))
        checks_.fail("the fence of " + asked.keys.lock() + " is not the last token");
    for (const auto& [token, id] : fresh) lock.known.erase(id + "+");
    if (asked.what == step::cancel) lock.known.erase(asked.id + "+");
}

void rw_checker::check_token(lock_record& lock, const rw_state& now, const std::string& id) {
    const std::uint64_t token = now.token_of(id);
    if (token <= lock.highest_token && !checks_.tokens_may_repeat())
        checks_.fail("a token did not grow: " + std::to_string(token) + " for " + id);
    lock.highest_token = std::max(token, lock.highest_token);
    checks_.made.insert({id, token});
    if (wire::mark_of(id) == wire::mark::none) return;
    // An upgrade adds to what its reading half may use.
    checks::block& numbers = checks_.blocks.try_emplace(id, checks::block{token, token}).first->second;
    numbers.last = std::max(token, has_write(now.held(id)) ? fence_of(now) : 0);
    lock.highest_token = std::max(lock.highest_token, numbers.last);
}

// No waiter that comes first is still waiting.
void rw_checker::check_order(const call& asked, const lock_record& lock, const rw_state& now,
                             const admission& granted) {
    if (checks_.excused.corrupted || (checks_.excused.data_lost && checks_.excused.set_back)) return;
    const waiter* const mine = find(lock, {granted.id, granted.wants});
    const turn its{granted.wants, mine != nullptr ? mine->number : UINT64_MAX};
    for (const rw_state::waiter& other : lock.before.queue) {
        const waiter* const known = find(lock, other);
        if (other.id == granted.id || known == nullptr || gave_up(lock, other)) continue;
        if (!comes_before({other.wants, known->number}, its, asked.prefer)) continue;
        if (other.id == asked.id && asked.what != step::acquire) continue;  // it leaves the queue by this call
        const char held = now.held(other.id);
        const bool satisfied = other.wants == 'r' ? has_read(held) : has_write(held);
        if (!satisfied && !upgrades_nothing(lock.before, other) && calm(lock, other))
            checks_.fail(other.id + " was overtaken by " + granted.id);
    }
}

void rw_checker::expect_entry(const call& asked, const rw_state& then, const std::string& id) {
    const std::uint64_t token = then.token_of(id);
    const char shape = then.held(id);
    const milliseconds learns_within = checks_.polls(wire::client_of(id)) ? longest_told_interval : milliseconds(0);
    checks_.time().after(
        entered_within + learns_within, [this, keys = asked.keys, id, token, shape, since = checks_.now()] {
            const auto last = locks_[keys.lock()].last_step.find(id);
            const bool gave_up = last != locks_[keys.lock()].last_step.end() && last->second != step::acquire;
            if (checks_.entered.contains({id, token}) || checks_.lost.contains(id) || gave_up) return;
            if (checks_.tokens_may_repeat()) return;  // clients rightly ignore a push whose token is not new
            const rw_state now = read_rw_state(checks_.server_of(keys.lock()), keys);
            const bool has_moved = checks_.settled_since(keys.lock()) > since;
            if (now.held(id) != shape || now.token_of(id) != token || has_moved) return;
            if (checks_.calm_since(wire::client_of(id), since))
                checks_.fail("the lock was handed over to " + id + ", which did not acquire it");
        });
}

// An upgrader without polls for a while may return before another that asked in the meantime. The latter is refused at
// its next poll.
void rw_checker::check_upgraders(const call& asked, const lock_record& lock, const rw_state& now) {
    const rw_state::waiter* const mine = now.find_waiter(asked.id);
    if (asked.what != step::acquire || mine == nullptr || mine->wants != 'u') return;
    for (const rw_state::waiter& who : now.queue) {
        if (who.id == asked.id) return;
        if (who.wants == 'u' && has_read(now.held(who.id)) && calm(lock, who))
            checks_.fail("two upgraders of " + asked.keys.lock() + " wait for each other");
    }
}

}  // namespace holdfast::sim
