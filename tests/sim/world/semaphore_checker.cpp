#include "world/semaphore_checker.hpp"

#include <algorithm>

namespace holdfast::sim {
namespace {

std::int64_t whole_number(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
    return bad == std::errc() && end == text.data() + text.size() ? number : 0;
}

// "<permits> <token>"
semaphore_state::grant permits_grant(std::string_view text) {
    const auto space = text.find(' ');
    if (space == std::string_view::npos) return {};
    const std::int64_t token = whole_number(text.substr(space + 1));
    if (token <= 0) return {};
    return {whole_number(text.substr(0, space)), static_cast<std::uint64_t>(token)};
}

// "lease interval seen floor permits channel"
std::int64_t read_permits(std::string_view entry) {
    for (int word = 0; word < 4; ++word) {
        const auto space = entry.find(' ');
        if (space == std::string_view::npos) return 0;
        entry.remove_prefix(space + 1);
    }
    return whole_number(entry.substr(0, entry.find(' ')));
}

// See common/deadlines.lua: after a move from a member whose clock is behind, the expiry shows by how much.
void deadlines_by_our_clock(semaphore_state& out) {
    std::int64_t last = 0;
    for (const auto& [id, ends] : out.leases) last = std::max(last, ends);
    if (out.leases_expire_ms == no_expiry || out.leases_expire_ms - last <= 1) return;
    for (auto& [id, ends] : out.leases) ends += out.leases_expire_ms - last;
}

}  // namespace

std::int64_t semaphore_state::held(const std::string& id) const {
    const auto lease = leases.find(id);
    const auto granted = grants.find(id);
    return lease == leases.end() || lease->second <= now_ms || granted == grants.end() ? 0 : granted->second.permits;
}

std::uint64_t semaphore_state::token_of(const std::string& id) const {
    const auto found = grants.find(id);
    return found == grants.end() ? 0 : found->second.token;
}

std::int64_t semaphore_state::sum_at(std::int64_t ms) const {
    std::int64_t sum = 0;
    for (const auto& [id, ends] : leases) {
        if (ends > ms) sum += held(id);
    }
    return sum;
}

bool semaphore_state::has_waiter(const std::string& id) const {
    return std::ranges::any_of(queue, [&](const waiter& one) { return one.id == id; });
}

semaphore_state read_semaphore_state(server& from, const wire::lock_keys& keys) {
    semaphore_state out;
    out.now_ms = from.now_us() / 1000;
    const auto fields_of = [&](const std::string& key, std::int64_t* expires) -> const field_map* {
        const entry* const found = from.peek(key);
        if (found == nullptr) return nullptr;
        if (expires != nullptr) *expires = found->expires_ms;
        return std::get_if<field_map>(&found->data);
    };
    const auto order_of = [&](const std::string& key, std::int64_t* expires) -> const sorted_set* {
        const entry* const found = from.peek(key);
        if (found == nullptr) return nullptr;
        if (expires != nullptr) *expires = found->expires_ms;
        return std::get_if<sorted_set>(&found->data);
    };
    if (const auto* const hash = fields_of(keys.lock(), &out.expires_ms)) {
        out.exists = true;
        for (const auto& [field, text] : hash->in_order()) {
            if (field == "declared") out.declared = whole_number(text);
            if (field == "limit") out.limit = whole_number(text);
            if (field == "out") out.out = whole_number(text);
            if (field == "version") out.version = text;
        }
    }
    if (const auto* const leases = order_of(keys.leases(), &out.leases_expire_ms)) {
        for (const auto& [score, id] : leases->in_order())
            out.leases[std::string(id)] = static_cast<std::int64_t>(score);
        deadlines_by_our_clock(out);
    }
    if (const auto* const grants = fields_of(keys.grants(), &out.grants_expire_ms)) {
        for (const auto& [id, text] : grants->in_order()) out.grants[id] = permits_grant(text);
    }
    const auto* const wishes = fields_of(keys.waiters(), nullptr);
    if (const auto* const order = order_of(keys.queue(), nullptr)) {
        for (const auto& [score, id] : order->in_order()) {
            const std::string* const wish = wishes == nullptr ? nullptr : wishes->find(id);
            out.queue.push_back({std::string(id), wish == nullptr ? 0 : read_permits(*wish)});
        }
    }
    return out;
}

// EVALSHA sha1 6 lock queue waiters fence leases grants id retention limit ..., or 3 lock leases grants id lease
semaphore_checker::call semaphore_checker::read(std::string_view script, const words& command) {
    call out;
    out.keys = wire::make_keys(wire::lock_name(std::string(command[3])), wire::key_naming::raw, "");
    if (script == "semaphore/renew") {
        out.what = step::renew;
        out.id = command[6];
        out.lease = to_ms(command[7]);
        return out;
    }
    const auto given = command.begin() + 3 + std::stoi(std::string(command[2]));
    out.id = given[0];
    if (script == "semaphore/acquire") {
        out.permits = whole_number(given[3]);
        out.lease = to_ms(given[4]);
        out.interval = to_ms(given[8]);
    } else {
        out.what = step::release;
        out.token = given[3];
    }
    return out;
}

void semaphore_checker::data_lost() {
    for (auto& [name, lock] : locks_) {
        lock.last_step.clear();
        for (auto& [id, who] : lock.known) who.opens_at = never;
    }
}

void semaphore_checker::changed(const std::string& lock) {
    for (auto& [id, who] : locks_[lock].known) who.opens_at = never;
}

void semaphore_checker::resized(server& at, const wire::lock_keys& keys) {
    lock_record& lock = locks_[keys.lock()];
    const semaphore_state now = read_semaphore_state(at, keys);
    lock.greatest_limit = std::max(lock.greatest_limit, now.limit);
    for (const auto& [id, grant] : now.grants) {
        checks_.made.insert({id, grant.token});
        lock.highest_token = std::max(lock.highest_token, grant.token);
    }
    changed(keys.lock());
}

void semaphore_checker::before_script(std::string_view script, const words& command) {
    asked_ = read(script, command);
    lock_record& lock = locks_[asked_.keys.lock()];
    lock.before = read_semaphore_state(*checks_.watched, asked_.keys);
    if (asked_.what != step::renew) check_slow(asked_, lock);
}

void semaphore_checker::after_script(std::string_view script, const words&, const value& answer) {
    const call& asked = asked_;
    if (checks_.trace) {
        checks_.trace("  " + std::string(script) + " " + asked.keys.lock() + " by " + asked.id + " permits " +
                      std::to_string(asked.permits) + " token " + asked.token + ": " + answer.to_string());
    }
    lock_record& lock = locks_[asked.keys.lock()];
    if (asked.what == step::release) lock.leaving.insert(asked.id);
    const bool is_garbage = checks_.excused.corrupted && answer.is_error();
    if (answer.is_error() && !is_sent_again(answer) && !is_garbage)
        checks_.fail(std::string(script) + " failed: " + answer.text);
    if (answer.is_error()) return;
    const semaphore_state now = read_semaphore_state(*checks_.watched, asked.keys);
    lock.greatest_limit = std::max({lock.greatest_limit, now.limit, lock.before.limit});
    if (asked.what != step::renew) check_agreement(asked, now);
    check_expiry(asked, now);
    check_others(asked, lock, now);
    check_own(asked, lock, now, answer);
    checks::steps_done& did = checks_.done[asked.id];
    const bool said_done = answer.items[0].integer == 1;
    if (asked.what == step::renew) {
        if (said_done && now.held(asked.id) != 0) did.renewed = checks_.now();
        return;
    }
    if (asked.what == step::release && now.held(asked.id) == 0) {
        did.left = checks_.now();
        if (lock.before.held(asked.id) != 0) did.released = checks_.now();
    }
    lock.last_step[asked.id] = asked.what;
    if (asked.what == step::acquire) checks_.note_acquire(asked.id, asked.lease);
    check_grants(asked, lock, now);
    update_queue(asked, lock, now);
    check_not_left_waiting(asked, lock, now);
}

bool semaphore_checker::calm(const lock_record& lock, const std::string& id) const {
    const auto found = lock.known.find(id);
    return found != lock.known.end() && !lock.leaving.contains(id) && !checks_.may_be_forgotten(id) &&
           checks_.calm_since(wire::client_of(id), found->second.arrived) &&
           checks_.settled_since(asked_.keys.lock()) <= found->second.arrived;
}

bool semaphore_checker::gave_up(const lock_record& lock, const std::string& id) const {
    const auto last = lock.last_step.find(id);
    return last != lock.last_step.end() && last->second == step::release;
}

void semaphore_checker::check_agreement(const call& asked, const semaphore_state& now) {
    // A lease that is gone looks like a clock that is behind, until the next script.
    if (checks_.excused.corrupted) return;
    const auto wrong = [&](const std::string& what) {
        checks_.fail("the keys of " + asked.keys.lock() + " disagree after a script by " + asked.id + ": " + what);
    };
    if (now.exists && now.out != now.sum_at(now.now_ms)) wrong("out is " + std::to_string(now.out));
    if (!now.leases.empty() && !now.exists) wrong("nobody knows the limit");
    if (now.exists && now.leases.empty() && now.queue.empty() && now.version.empty()) wrong("nobody holds or waits");
    for (const auto& [id, ends] : now.leases) {
        if (now.held(id) == 0) wrong(id + " has a lease but no grant, or its lease is over");
    }
    for (const auto& [id, grant] : now.grants) {
        if (!now.leases.contains(id)) wrong(id + " has a grant but no lease");
    }
}

void semaphore_checker::check_expiry(const call& asked, const semaphore_state& now) {
    if (now.exists && now.expires_ms == no_expiry) checks_.fail(asked.keys.lock() + " does not expire");
    std::int64_t last = 0;
    for (const auto& [id, ends] : now.leases) last = std::max(last, ends);
    if (last == 0) return;
    if (now.exists && now.expires_ms < last && !checks_.excused.corrupted)
        checks_.fail(asked.keys.lock() + " expires before a lease ends, after a script by " + asked.id);
    if (now.leases_expire_ms < last || (!now.grants.empty() && now.grants_expire_ms < last))
        checks_.fail("leases or grants of " + asked.keys.lock() + " expire before a lease ends");
    // Otherwise such leases would look like those of a clock that is behind, and dead holders would revive.
    if (!checks_.excused.corrupted && now.leases_expire_ms - last > 1)
        checks_.fail("leases of " + asked.keys.lock() + " outlive the last lease");
}

void semaphore_checker::check_others(const call& asked, const lock_record& lock, const semaphore_state& now) {
    if (checks_.excused.corrupted) return;
    for (const auto& [id, ends] : lock.before.leases) {
        const std::int64_t before = lock.before.held(id);
        if (id == asked.id || before == 0) continue;
        if (now.held(id) != before || now.token_of(id) != lock.before.token_of(id)) {
            checks_.fail("what " + id + " held was changed by " + asked.id);
        } else if (now.leases.at(id) < ends) {
            checks_.fail("the lease of " + id + " was cut by " + asked.id);
        }
    }
}

void semaphore_checker::check_own(const call& asked, const lock_record& lock, const semaphore_state& now,
                                  const value& answer) {
    const semaphore_state& was = lock.before;
    const std::int64_t before = was.held(asked.id);
    const std::int64_t after = now.held(asked.id);
    const bool said_done = !answer.items.empty() && answer.items[0].integer == 1;
    const auto wrong = [&](const std::string& what) { checks_.fail(asked.id + " received a wrong answer: " + what); };
    if (asked.what == step::release) {
        const bool meant = asked.token == "0" || asked.token == std::to_string(was.token_of(asked.id));
        if (before != 0 && meant != (after == 0)) checks_.fail(asked.id + " released something else than it meant");
        if (before == 0 && after != 0) checks_.fail(asked.id + " was granted permits by its release");
        if (said_done != (before != 0 && meant)) wrong("of a release");
        if (now.has_waiter(asked.id) && (meant || before == 0)) {
            checks_.fail(asked.id + " gave up and is still in the queue");
        }
        return;
    }
    if (before != 0 && (after != before || now.token_of(asked.id) != was.token_of(asked.id)))
        checks_.fail(asked.id + " lost what it held by its own request");
    if (asked.what == step::renew && before == 0 && after != 0) checks_.fail("a renewal revived " + asked.id);
    if (!said_done) return;
    if (after == 0 || (asked.what == step::acquire && after != asked.permits)) wrong("it has not what it asked for");
    if (asked.what == step::acquire && answer.items.at(1).text != std::to_string(now.token_of(asked.id)))
        wrong("another token");
    if (after != 0 && now.leases.at(asked.id) < was.now_ms + asked.lease.count()) wrong("its lease is not full");
}

void semaphore_checker::check_grants(const call& asked, lock_record& lock, const semaphore_state& now) {
    const semaphore_state& was = lock.before;
    std::vector<std::pair<std::uint64_t, std::string>> fresh;
    for (const auto& [id, grant] : now.grants) {
        if (now.held(id) != 0 && (was.held(id) == 0 || was.token_of(id) != grant.token))
            fresh.emplace_back(grant.token, id);
    }
    std::sort(fresh.begin(), fresh.end());
    if (!fresh.empty() && now.sum_at(now.now_ms) > now.limit)
        checks_.fail("more permits of " + asked.keys.lock() + " are out than its limit, by " + asked.id);
    for (const auto& [token, id] : fresh) {
        if (checks_.trace) checks_.trace("  grant to " + id + " token " + std::to_string(token));
        if (token <= lock.highest_token && !checks_.tokens_may_repeat())
            checks_.fail("a token did not grow: " + std::to_string(token) + " for " + id);
        lock.highest_token = std::max(token, lock.highest_token);
        checks_.made.insert({id, token});
        check_order(asked, lock, now, id);
        const bool waited = was.has_waiter(id);
        if (id != asked.id && !waited) checks_.fail(id + " was granted permits without waiting for them");
        if (id != asked.id && !may_be_handed_to(asked, lock, id))
            checks_.fail("permits were handed over to a waiter without subscription: " + id);
        if (id != asked.id && !checks_.excused.data_lost && gave_up(lock, id))
            checks_.fail("permits were handed over to a waiter that had given up: " + id);
        if (waited && calm(lock, id)) expect_entry(asked, now, id);
    }
}

// As far as the scripts can know.
bool semaphore_checker::may_be_handed_to(const call& asked, const lock_record& lock, std::string_view id) const {
    const auto known = lock.known.find(id);
    const std::string_view client = wire::client_of(id);
    const bool polls = known != lock.known.end() &&
                       checks_.may_learn_late(asked.keys.lock(), client, known->second.interval, known->second.polled);
    return polls || checks_.listens(asked.keys.lock(), client);
}

// No waiter that came first is still waiting.
void semaphore_checker::check_order(const call& asked, const lock_record& lock, const semaphore_state& now,
                                    const std::string& id) {
    if (checks_.excused.corrupted || (checks_.excused.data_lost && checks_.excused.set_back)) return;
    const auto mine = lock.known.find(id);
    const std::uint64_t number = mine == lock.known.end() ? UINT64_MAX : mine->second.number;
    for (const semaphore_state::waiter& other : lock.before.queue) {
        const auto found = lock.known.find(other.id);
        if (other.id == id || found == lock.known.end() || gave_up(lock, other.id)) continue;
        if (found->second.number > number || now.held(other.id) != 0 || other.permits > now.limit) continue;
        if (other.id == asked.id && asked.what == step::release) continue;  // it leaves the queue by this call
        // Its client does not poll: the position comes from a late copy of an acquire whose caller had given up.
        if (checks_.now() - found->second.polled > 2 * found->second.interval) continue;
        if (calm(lock, other.id)) checks_.fail(other.id + " was overtaken by " + id);
    }
}

void semaphore_checker::expect_entry(const call& asked, const semaphore_state& then, const std::string& id) {
    const milliseconds learns_within = checks_.polls(wire::client_of(id)) ? longest_told_interval : milliseconds(0);
    checks_.time().after(entered_within + learns_within, [this, keys = asked.keys, id, token = then.token_of(id),
                                                          since = checks_.now()] {
        if (checks_.entered.contains({id, token}) || checks_.lost.contains(id) || gave_up(locks_[keys.lock()], id))
            return;
        if (checks_.excused.corrupted) return;
        if (checks_.tokens_may_repeat()) return;  // clients rightly ignore a push whose token is not new
        const semaphore_state now = read_semaphore_state(checks_.server_of(keys.lock()), keys);
        if (now.held(id) == 0 || now.token_of(id) != token || checks_.settled_since(keys.lock()) > since) return;
        if (checks_.calm_since(wire::client_of(id), since))
            checks_.fail("permits were handed over to " + id + ", which did not acquire them");
    });
}

// When the leases have ended that are in the way of the first waiter. Only it may be served.
instant semaphore_checker::opens_at(const semaphore_state& now) const {
    const semaphore_state::waiter& first = now.queue.front();
    if (first.permits == 0 || !now.exists || first.permits > now.limit) return never;
    std::int64_t opens_ms = now.now_ms;
    std::vector<std::int64_t> ends;
    for (const auto& [id, at] : now.leases) ends.push_back(at);
    std::sort(ends.begin(), ends.end());
    for (const std::int64_t at : ends) {
        if (now.sum_at(opens_ms) + first.permits <= now.limit) break;
        opens_ms = std::max(opens_ms, at);
    }
    return checks_.now() + milliseconds(opens_ms - now.now_ms);
}

void semaphore_checker::check_slow(const call& asked, lock_record& lock) {
    const semaphore_state& now = lock.before;
    if (checks_.excused.corrupted || now.queue.empty()) return;
    const std::string& id = now.queue.front().id;
    const auto found = lock.known.find(id);
    if (found == lock.known.end()) return;
    waiter& known = found->second;
    if (opens_at(now) > checks_.now()) {
        known.opens_at = never;
        return;
    }
    if (known.opens_at == never) known.opens_at = checks_.now();
    const instant opened = std::max(known.opens_at, checks_.settled_since(asked.keys.lock()));
    const milliseconds allowed = checks_.finds_out_within(wire::client_of(id), true, known.interval);
    if (opened > checks_.now() || checks_.now() - opened <= allowed) return;
    if (gave_up(lock, id) || lock.leaving.contains(id) || checks_.may_be_forgotten(id)) return;
    if (checks_.calm_since(wire::client_of(id), std::min(known.arrived, known.opens_at)))
        checks_.fail(id + " could have been admitted long ago");
}

void semaphore_checker::check_not_left_waiting(const call& asked, const lock_record& lock, const semaphore_state& now) {
    if (checks_.excused.corrupted || now.queue.empty()) return;
    const std::string& id = now.queue.front().id;
    if (opens_at(now) > checks_.now() || gave_up(lock, id) || !may_be_handed_to(asked, lock, id)) return;
    if (calm(lock, id)) checks_.fail(id + " could be admitted and was not, by " + asked.id);
}

void semaphore_checker::update_queue(const call& asked, lock_record& lock, const semaphore_state& now) {
    for (const semaphore_state::waiter& who : now.queue) {
        const auto [found, fresh] = lock.known.try_emplace(who.id);
        if (fresh) found->second = {checks_.now(), checks_.next_number++, asked.interval, never, checks_.now()};
        if (who.id != asked.id || asked.what != step::acquire) continue;
        found->second.polled = checks_.now();
        found->second.interval = asked.interval;  // of those who poll it depends on their position
    }
    if (now.queue.empty()) return;
    waiter& first = lock.known.at(now.queue.front().id);
    const instant opens = opens_at(now);
    first.opens_at = first.opens_at <= checks_.now() && opens <= checks_.now() ? first.opens_at : opens;
}

}  // namespace holdfast::sim
