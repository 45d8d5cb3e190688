#include "world/checker.hpp"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "wire/hold_id.hpp"
#include "wire/scripts.hpp"

namespace holdfast::sim {
namespace {

constexpr milliseconds longest_lease{4000};

}  // namespace

void checker::data_lost(bool mistrusted) {
    excused.data_lost = true;
    if (!mistrusted) excused.overlap = true;
    read_write_.data_lost();
    semaphores_.data_lost();
    for (auto& [name, state] : locks_) {
        state.last_step.clear();
        state.queue.clear();
        state.holder.clear();
        state.fence.clear();
        state.free_from = never;
    }
}

void checker::clock_jumped(nanoseconds by) {
    excused.jumped = true;
    if (by < nanoseconds(0)) excused.set_back = true;
    if (by > nanoseconds(0)) excused.overlap = true;
    read_write_.clock_jumped(by);
    semaphores_.data_lost();
    for (auto& [name, state] : locks_) {
        if (state.free_from != never) state.free_from = std::max(state.free_from - by, now());
    }
}

// --- the clients' side

std::shared_ptr<belief> checker::believes(belief fresh) {
    holders_.insert(fresh.id);
    entered.insert({fresh.id, fresh.token});
    if (fresh.token != 0) ++cycles_;
    fresh.since = now();
    fresh.kept_until = std::max(fresh.until, now() + fresh.lease);
    check_made(fresh);
    check_overlap(fresh);
    check_delay(fresh);
    check_growth(fresh);
    check_arrival(fresh);
    return remember(std::move(fresh));
}

std::shared_ptr<belief> checker::remember(belief fresh) {
    auto kept = std::make_shared<belief>(std::move(fresh));
    auto& all = beliefs_[kept->lock];
    std::erase_if(all, [this](const auto& b) { return b->over || b->kept_until + b->delay < now(); });
    all.push_back(kept);
    return kept;
}

void checker::hold_acquired(const std::string& id, std::uint64_t token) {
    holders_.insert(id);
    entered.insert({id, token});
    belief fresh;
    fresh.id = id;
    fresh.token = token;
    check_made(fresh);
}

std::shared_ptr<belief> checker::believes_locally(belief fresh) {
    ++cycles_;
    fresh.since = now();
    fresh.kept_until = std::max(fresh.until, now() + fresh.lease);
    if (fresh.until <= now()) fail("a local grant of " + fresh.id + ", whose validity has ended");
    check_overlap(fresh);
    return remember(std::move(fresh));
}

void checker::upgraded_locally(belief& held, instant asked) {
    held.mode = engine::access::exclusive;
    held.token = 0;
    held.asked = asked;
    held.since = now();
    if (!held.over && held.until > now()) check_overlap(held);
}

void checker::numbered(belief& held, std::uint64_t token) {
    held.token = token;
    if (held.over || held.until <= now()) return;
    const bool is_plain = wire::mark_of(held.id) == wire::mark::none;
    if (seen_ == view::of_the_server && is_plain) check_made(held);
    if (seen_ == view::of_the_server && !is_plain && !is_in_a_block(held) && !excused.data_lost && !excused.corrupted)
        fail("the server's fence does not cover the number " + std::to_string(token) + " of " + held.id);
    check_growth(held);
}

void checker::told_released(const std::string& id, instant asked, std::optional<errc> why_not) {
    if (seen_ == view::of_beliefs) return;
    const steps_done& did = done[id];
    if (!why_not && did.left < asked) fail(id + " was told that it is released, and no script did that");
    const bool denied = why_not == errc::not_held || why_not == errc::held_by_other;
    if (denied && did.released >= asked && calm_since(wire::client_of(id), asked))
        fail(id + " was told that it was not held, and a script has released it");
}

// Perhaps by a renewal that was in flight already.
void checker::told_renewed(const std::string& id, instant asked) {
    constexpr milliseconds longest_flight{500};
    if (seen_ == view::of_the_server && done[id].renewed + longest_flight < asked)
        fail(id + " was told that it is renewed, and no script did that");
}

void checker::extended(const std::shared_ptr<belief>& held, instant until) {
    const bool had_ended = held->until <= now();
    if (until > held->until) held->kept_until = std::max(held->kept_until, now() + held->lease);
    held->until = until;
    if (until > now() && lost.contains(held->id)) fail("a hold that was lost is believed in again: " + held->id);
    if (held->over || !had_ended || until <= now()) return;
    check_overlap(*held);
    // The list may have dropped it in the meantime.
    auto& all = beliefs_[held->lock];
    if (std::find(all.begin(), all.end(), held) == all.end()) all.push_back(held);
}

void checker::upgraded(belief& held, std::uint64_t token, instant asked) {
    held.mode = engine::access::exclusive;
    held.token = token;
    held.asked = asked;
    held.since = now();
    held.kept_until = std::max(held.kept_until, now() + held.lease);
    entered.insert({held.id, token});
    check_made(held);
    check_growth(held);
    if (!held.over && held.until > now()) check_overlap(held);
}

// At every instant, as the holders believe. A resize takes nothing from those who hold.
void checker::check_permits(const belief& fresh) {
    if (excused.overlap || excused.corrupted) return;
    std::int64_t sum = fresh.permits;
    for (const auto& other : beliefs_[fresh.lock]) {
        if (!other->over && other->until > now() && other.get() != &fresh) sum += other->permits;
    }
    if (sum > std::max(fresh.limit, semaphores_.greatest_limit(fresh.lock)))
        fail("the holders of " + fresh.lock + " believe in more permits than its limit, with " + fresh.id);
}

void checker::check_overlap(const belief& fresh) {
    if (fresh.permits != 0) return check_permits(fresh);
    constexpr auto shared = engine::access::shared;
    for (const auto& other : beliefs_[fresh.lock]) {
        if (other->over || other->until <= now() || other.get() == &fresh) continue;
        if (fresh.mode == shared && other->mode == shared) continue;
        const bool among_us = is_among_us(fresh) && is_among_us(*other);
        // A foreign client may have shortened the key's expiry, and it does not notice a restart of the server.
        if (!among_us && (excused.data_lost || read_write_.is_excused(fresh.lock))) continue;
        if ((excused.overlap || read_write_.is_corrupted(fresh.lock)) && (!among_us || may_overlap(fresh, *other)))
            continue;
        fail("two conflicting holders of " + fresh.lock + ": " + other->id + " token " + std::to_string(other->token) +
             " and " + fresh.id + " token " + std::to_string(fresh.token));
    }
}

// A released hold is over; one that is not has expired. The rates of two clocks differ by at most one percent.
void checker::check_delay(const belief& fresh) {
    if (excused.overlap || excused.data_lost || excused.corrupted || !is_among_us(fresh)) return;
    for (const auto& other : beliefs_[fresh.lock]) {
        if (other->over || other->delay == milliseconds(0)) continue;
        if (now() >= other->until + other->delay * 98 / 100 - milliseconds(1)) continue;
        fail(fresh.id + " acquired " + fresh.lock + " within the delay after the hold of " + other->id);
    }
}

// After a fault outside the promise both may believe. But the resource must be able to tell them apart and to refuse
// the older one: the holder that asked after the other had acquired has the larger token. Otherwise the holder that
// learns of its grant last may have the older one.
bool checker::may_overlap(const belief& fresh, const belief& other) const {
    if (tokens_may_repeat() || fresh.token == 0 || other.token == 0) return true;
    if (fresh.asked > other.since) return fresh.token > other.token;
    if (other.asked > fresh.since) return fresh.token < other.token;
    return fresh.token != other.token;
}

bool checker::is_in_a_block(const belief& fresh) const {
    const auto covers = [&](const auto& known) {
        return known.second.first <= fresh.token && fresh.token <= known.second.last;
    };
    const auto found = blocks.find(fresh.id);
    if (found != blocks.end() && covers(*found)) return true;
    const auto [from, to] = former_blocks.equal_range(fresh.id);
    return std::any_of(from, to, covers);
}

// A client believes only in grants that the server made, with that token.
void checker::check_made(const belief& fresh) {
    if (seen_ == view::of_the_server && fresh.token != 0 && !made.contains({fresh.id, fresh.token}) &&
        !is_in_a_block(fresh))
        fail(fresh.id + " believes in a grant that no server made: token " + std::to_string(fresh.token));
}

// Several servers count tokens independently: the tokens of the holders must grow. Readers may share a token, because
// none of them writes.
void checker::check_growth(const belief& fresh) {
    if (fresh.token == 0) return;
    tokens& highest = believed_[fresh.lock];
    const bool reads = fresh.mode == engine::access::shared;
    // Where the server is seen, a holder that learns of its grant late is none the worse; but one that takes its number
    // by itself is told nothing late.
    const bool is_told_late = seen_ == view::of_the_server && made.contains({fresh.id, fresh.token});
    // A corrupting client removed a hold, so another was granted beside it: its users may take their numbers later.
    const bool may_overlap = excused.overlap || read_write_.is_corrupted(fresh.lock);
    if (!is_told_late && fresh.token <= (reads ? highest.exclusive : highest.any) && !may_overlap &&
        !tokens_may_repeat())
        fail("a token did not grow: " + std::to_string(fresh.token) + " for " + fresh.id);
    highest.any = std::max(highest.any, fresh.token);
    if (!reads) highest.exclusive = std::max(highest.exclusive, fresh.token);
}

// Tickets follow the median of the servers' clocks, as each client estimates it. The rates of the clocks differ by at
// most one percent.
void checker::check_arrival(const belief& fresh) {
    constexpr milliseconds known_within{500};
    if (!waiting_since || excused.jumped || !calm_since(wire::client_of(fresh.id), fresh.asked)) return;
    for (const std::string& other : waiting_since(fresh.lock, fresh.asked - known_within))
        fail(other + ", and was overtaken by " + fresh.id);
}

bool checker::may_be_taken(const std::string& lock) {
    const auto& all = beliefs_[lock];
    return std::any_of(all.begin(), all.end(), [this](const auto& b) {
        return !b->over && (b->until > now() || (lost.contains(b->id) && b->kept_until > now()));
    });
}

void checker::lost_without_reason(const belief& held) {
    if (excused.jumped || excused.data_lost || excused.corrupted || read_write_.is_excused(held.lock)) return;
    // After the slot has settled, a renewal and its confirmation succeed in time unless the lease was almost over.
    if (excused.slow_moves && settled_since(held.lock) > std::max(now() - held.lease / 5, instant{})) return;
    fail("a holder without trouble lost " + held.lock + ": " + held.id);
}

// Scripts do not fail by themselves, and callers never see that a slot moves.
void checker::told(const std::string& who, errc why) {
    if (why == errc::server_error && !excused.corrupted) fail(who + " received an error that is not about the lock");
}

void checker::wrongly_refused(const std::string& lock, const std::string& who, errc why) {
    if (excused.corrupted || settled_since(lock) != instant{}) return;
    fail(who + " was refused " + lock + " without a reason, code " + std::to_string(static_cast<int>(why)));
}

void checker::foreign_acquired(const std::string& lock, instant until) {
    belief fresh{.lock = lock, .id = "foreign", .token = 0, .until = until};
    check_overlap(fresh);
    lock_state& state = locks_[lock];
    state.holder = "foreign";
    state.free_from = until;
}

void checker::foreign_released(const std::string& lock) {
    locks_[lock].free_from = now();
}

void checker::queue_may_expire(const std::string& lock) {
    lock_state& state = locks_[lock];
    state.shuffled.insert(state.queue.begin(), state.queue.end());
}

// --- the server's side

namespace {
using names_of_scripts = std::unordered_map<std::string_view, std::string_view, string_hash, std::equal_to<>>;

std::string_view script_of(const words& command) {
    static const names_of_scripts known = [] {
        names_of_scripts all;
        for (const auto& script : wire::all()) {
            all.emplace(script.sha1, script.name);
            all.emplace(script.text, script.name);
        }
        return all;
    }();
    const auto found = known.find(command[1]);
    return found == known.end() ? "" : found->second;
}
}  // namespace

bool checker::has_one_key(step what) {
    return what == step::renew || what == step::release_alone;
}

// Some of the numbers may go to its users without another script.
void checker::watch_keeper(const lock_state& state) {
    if (wire::mark_of(state.holder) == wire::mark::none || state.queue.empty()) return;
    expect_give_back(state.name, state.holder, [this, lock = state.name, id = state.holder] {
        const lock_state& now = locks_[lock];
        return now.holder == id && !now.queue.empty();
    });
}

// EVALSHA sha1 keys lock [queue waiters fence [gap [notes]]] id ...
checker::call checker::read(std::string_view script, const words& command) const {
    call out{};
    out.what = script == "mutex/acquire"         ? step::acquire
               : script == "mutex/release"       ? step::release
               : script == "mutex/release_alone" ? step::release_alone
                                                 : step::renew;
    out.lock = command[3];
    const auto given = command.begin() + 3 + std::stoi(std::string(command[2]));
    out.id = given[0];
    out.brings_numbers = script == "mutex/renew_block";
    if (out.brings_numbers) out.fence = command[5];
    if (has_one_key(out.what)) return out;
    out.queue = command[4];
    out.waiters = command[5];
    out.fence = command[6];
    const bool yields = out.what != step::release || command.end() - given < 5 || given[4] != "0";
    const bool is_shared = given - command.begin() == 8;  // with notes behind it, the gap only fills its place
    if (is_shared && yields) out.gap = command[7];
    if (out.what != step::acquire) return out;
    out.lease = to_ms(given[1]);
    out.interval = to_ms(given[6]);
    return out;
}

// A script of several locks does to each what the script of one lock would. `2 + 4 * n` arguments are keys; then
// acquire_all: number, retention, (id, lease, floor) ...; release_all: number, (id, token) ...
std::vector<checker::call> checker::read_all(std::string_view script, const words& command) const {
    const bool acquires = script == "mutex/acquire_all";
    if (!acquires && script != "mutex/release_all") return {read(script, command)};
    std::vector<call> all;
    const std::size_t keys = std::stoul(std::string(command[2]));
    for (std::size_t i = 0; i < keys / 4; ++i) {
        const std::size_t first_key = 3 + 4 * i;
        const std::size_t given = 3 + keys + (acquires ? 2 + 3 * i : 1 + 2 * i);
        call& one = all.emplace_back();
        one.what = acquires ? step::acquire : step::release;
        one.lock = command[first_key];
        one.queue = command[first_key + 1];
        one.waiters = command[first_key + 2];
        one.fence = command[first_key + 3];
        one.id = command[given];
        if (acquires) one.lease = to_ms(command[given + 1]);
    }
    return all;
}

std::string checker::get(const std::string& key) {
    const entry* const there = watched->peek(key);
    if (there == nullptr) return {};
    const auto* const text = std::get_if<std::string>(&there->data);
    return text == nullptr ? watched->run({"GET", key}).text : *text;
}

namespace {

bool knows_notes(std::string_view script) {
    constexpr std::string_view all[] = {"mutex/acquire", "mutex/release", "mutex/renew",
                                        "rw/acquire",    "rw/release",    "rw/renew"};
    return std::find(std::begin(all), std::end(all), script) != std::end(all);
}

}  // namespace

void checker::before_script(server& at, const words& command) {
    const std::string_view script = script_of(command);
    if (knows_notes(script)) notes_.note_given(script, command);
    if (seen_ == view::of_beliefs) return;
    watched = &at;
    if (knows_notes(script)) notes_.before_script(script, command);
    if (script.starts_with("rw/")) return read_write_.before_script(script, command);
    if (script.starts_with("semaphore/")) return semaphores_.before_script(script, command);
    for (const call& asked : read_all(script, command)) {
        lock_state& state = locks_[asked.lock];
        state.name = asked.lock;
        state.holder = get(asked.lock);
        if (!has_one_key(asked.what)) state.fence = get(asked.fence);
        state.gap_end_us = asked.gap.empty() ? 0 : gap_end_us(at, asked.gap);
    }
}

void checker::after_script(const words& command, const value& answer) {
    const std::string_view script = script_of(command);
    if (seen_ == view::of_beliefs) {
        if (!trace) return;
        std::string told = "  " + std::string(script);
        for (std::size_t i = 3; i < command.size(); ++i) told += " " + std::string(command[i]);
        return trace(told + ": " + answer.to_string());
    }
    if (knows_notes(script)) notes_.after_script(script, command, answer);
    if (script.starts_with("rw/")) return read_write_.after_script(script, command, answer);
    if (script.starts_with("semaphore/")) return semaphores_.after_script(script, command, answer);
    const std::vector<call> all = read_all(script, command);
    if (all.size() == 1) return after_call(all.front(), answer);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const value& part = answer.is_error() ? answer : answer.items.at(i);
        if (part.type != value::kind::nil) after_call(all[i], part);
    }
}

void checker::after_call(const call& asked, const value& answer) {
    if (trace) {
        constexpr std::string_view names[] = {"acquire", "release", "release alone", "renew"};
        trace("  " + std::string(names[static_cast<std::size_t>(asked.what)]) + " " + asked.lock + " by " + asked.id +
              ": " + answer.to_string());
    }
    if (is_half_run(answer)) fail("a script was stopped half-way: " + answer.text);
    lock_state& state = locks_[asked.lock];
    if (asked.what == step::release) state.leaving.insert(asked.id);
    if (answer.is_error()) return;
    const std::string holder = get(asked.lock);
    check_step(asked, state, holder);
    const bool said_done = !answer.items.empty() && answer.items[0].integer == 1;
    if (asked.what == step::renew && said_done && holder == asked.id) done[asked.id].renewed = now();
    if (asked.what == step::release || asked.what == step::release_alone) {
        // A position that lost data brought back may be served by the release that found nothing: by another grant.
        if (holder != asked.id || state.holder != asked.id) done[asked.id].left = now();
        if (holder != asked.id && state.holder == asked.id) done[asked.id].released = now();
    }
    if (asked.brings_numbers && said_done) {
        state.fence = get(asked.fence);
        state.highest_token = std::max(state.highest_token, std::strtod(state.fence.c_str(), nullptr));
        blocks[asked.id].last = static_cast<std::uint64_t>(state.highest_token);
    }
    if (asked.what == step::renew) {
        if (holder == asked.id) state.free_from = now() + milliseconds(watched->run({"PTTL", asked.lock}).integer);
        return;
    }
    if (asked.what == step::release_alone) {
        if (holder != state.holder) state.free_from = now();
        return;
    }
    if (state.holder.empty()) check_slow(state);
    if (!asked.gap.empty()) check_turns(asked, state, holder);
    const std::string fence = get(asked.fence);
    state.last_step[asked.id] = asked.what;
    if (asked.what == step::acquire) note_acquire(asked.id, asked.lease);
    const bool fresh = !holder.empty() && (holder != state.holder || fence != state.fence);
    const bool was_free = state.holder.empty();
    state.fence = fence;
    if (fresh) granted(asked, state, holder);
    if (holder.empty()) {
        if (!was_free) state.free_from = now();
    } else {
        const auto left = watched->run({"PTTL", asked.lock}).integer;
        state.free_from = left < 0 ? never : now() + milliseconds(left);
    }
    state.holder = holder;
    update_queue(asked, state);
    watch_keeper(state);
}

void checker::check_step(const call& asked, const lock_state& was, const std::string& holder) {
    if (asked.what == step::renew && holder != was.holder) fail("a renewal changed the holder: " + asked.id);
    if (asked.what == step::acquire && !was.holder.empty() && holder != was.holder)
        fail("the lock was taken from " + was.holder + " by " + asked.id);
    const bool releases = asked.what == step::release || asked.what == step::release_alone;
    if (releases && !was.holder.empty() && was.holder != asked.id && holder != was.holder)
        fail("the hold of " + was.holder + " was released by " + asked.id);
}

bool checker::calm(const lock_state& state, const std::string& id) const {
    const auto found = state.known.find(id);
    return found != state.known.end() && !state.leaving.contains(id) && !may_be_forgotten(id) &&
           calm_since(wire::client_of(id), found->second.arrived);
}

void checker::check_slow(const lock_state& was) {
    if (was.free_from == never || excused.corrupted) return;
    const instant available_from = std::max(was.free_from, settled_since(was.name));
    if (available_from > now()) return;
    for (const std::string& id : was.queue) {
        const auto found = was.known.find(id);
        if (found == was.known.end() || found->second.arrived > available_from || !calm(was, id)) continue;
        const milliseconds allowed = finds_out_within(wire::client_of(id), id == was.queue[0], found->second.interval);
        if (now() - available_from > allowed) fail("the lock was free for too long while " + id + " waited");
    }
}

// A turn of our clients lasts at most eight times 50 ms and ends with the next release. Without waiters nobody yields.
void checker::check_turns(const call& asked, lock_state& state, const std::string& holder) {
    constexpr std::int64_t longest_turn_us = 400'000;
    const std::int64_t now_us = watched->now_us();
    const bool was_queued = std::find(state.queue.begin(), state.queue.end(), holder) != state.queue.end();
    if (state.holder.empty() && !holder.empty() && state.gap_end_us > 0 && was_queued && !excused.corrupted) {
        fail(holder + " acquired the lock during a gap for foreign clients");
    }
    if (state.holder.empty() || holder.empty()) state.taken_since_us = now_us;
    const bool handed_over = asked.what == step::release && state.holder == asked.id && was_queued;
    if (!handed_over || excused.set_back || excused.data_lost || excused.corrupted) return;
    // At least since the previous holder acquired; a holder may hold for as long as it likes.
    const std::int64_t of_this_hold = now_us - static_cast<std::int64_t>(state.highest_token);
    if (now_us - state.taken_since_us - of_this_hold > longest_turn_us && of_this_hold > 0) {
        fail("foreign clients never get a turn at " + asked.lock);
    }
}

void checker::granted(const call& asked, lock_state& state, const std::string& id) {
    if (trace) trace("  grant to " + id + " token " + state.fence);
    check_token(state, id);
    check_order(state, id);
    if (id == asked.id) return;
    const auto known = state.known.find(id);
    const bool may_be_late = known != state.known.end() && may_learn_late(asked.lock, wire::client_of(id),
                                                                          known->second.interval, known->second.asked);
    if (!may_be_late && !listens(asked.lock, wire::client_of(id)))
        fail("the lock was handed over to a waiter without subscription: " + id);
    // An older snapshot may restore a queue position that a release by token does not remove.
    if (!excused.data_lost && state.last_step[id] == step::release)
        fail("the lock was handed over to a waiter that had given up: " + id);
    if (calm(state, id)) expect_entry(asked.lock, id);
}

void checker::check_token(lock_state& state, const std::string& id) {
    double token = 0;
    std::from_chars(state.fence.data(), state.fence.data() + state.fence.size(), token);
    if (token <= state.highest_token && !tokens_may_repeat())
        fail("a token did not grow: " + state.fence + " for " + id);
    const auto before = static_cast<std::uint64_t>(state.highest_token);
    state.highest_token = std::max(token, state.highest_token);
    // The fence shows the last number of a marked grant.
    if (wire::mark_of(id) != wire::mark::none) {
        // After a corrupted mark or a jump of the clock the id's own poll may make its grant anew. The message that
        // told of the first one may come later than that, and tells the truth.
        if (const auto former = blocks.find(id); former != blocks.end()) former_blocks.insert(*former);
        blocks[id] = {tokens_may_repeat() ? 0 : before + 1, static_cast<std::uint64_t>(token)};
    } else {
        made.insert({id, static_cast<std::uint64_t>(token)});
    }
}

void checker::check_order(const lock_state& state, const std::string& id) {
    const auto mine = state.known.find(id);
    for (const std::string& other : state.queue) {
        const auto found = state.known.find(other);
        if (other == id || found == state.known.end() || excused.corrupted || (excused.data_lost && excused.set_back))
            continue;
        if (mine != state.known.end() && mine->second.number < found->second.number) continue;
        if (state.shuffled.contains(id) && state.shuffled.contains(other)) continue;
        const auto last = state.last_step.find(other);
        if (last != state.last_step.end() && last->second == step::release) continue;
        // Its client does not poll: the position comes from a late copy of an acquire whose caller had given up.
        if (now() - found->second.asked > 2 * found->second.interval) continue;
        // Its subscription had to move, too.
        if (settled_since(state.name) > found->second.arrived) continue;
        if (calm(state, other)) fail(other + " was overtaken by " + id);
    }
}

void checker::expect_entry(const std::string& lock, const std::string& id) {
    const milliseconds learns_within = polls(wire::client_of(id)) ? longest_told_interval : milliseconds(0);
    time().after(entered_within + learns_within, [this, lock, id, since = now()] {
        if (holders_.contains(id) || locks_[lock].last_step[id] == step::release) return;
        if (tokens_may_repeat()) return;  // clients rightly ignore a push whose token is not new
        watched = &server_of(lock);
        if (get(lock) != id || !calm_since(wire::client_of(id), since) || settled_since(lock) > since) return;
        fail("the lock was handed over to " + id + ", which did not acquire it");
    });
}

void checker::update_queue(const call& asked, lock_state& state) {
    state.queue.clear();
    for (const value& item : watched->run({"ZRANGE", asked.queue, "0", "-1"}).items) {
        if (!wire::is_ours(item.text)) continue;
        state.queue.push_back(item.text);
        if (state.known.contains(item.text)) continue;
        state.known[item.text] = {now(), next_number++, asked.interval};
    }
    // Those whose queue expired under them wait, too.
    for (const std::string& id : state.shuffled) {
        if (std::find(state.queue.begin(), state.queue.end(), id) == state.queue.end() &&
            watched->run({"HEXISTS", asked.waiters, id}).integer == 1) {
            state.queue.push_back(id);
        }
    }
    const auto asker = state.known.find(asked.id);
    if (asker != state.known.end() && asked.what == step::acquire) {
        asker->second.asked = now();
        asker->second.interval = asked.interval;  // of those who poll it depends on their position
    }
}

}  // namespace holdfast::sim
