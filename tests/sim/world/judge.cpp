#include "world/judge.hpp"

#include <algorithm>
#include <charconv>

#include "engine/hold_id.hpp"
#include "scripts/registry.hpp"

namespace holdfast::sim {
namespace {

// The dead holder's lease, then the stagger of the whole line, then a trip there and back.
constexpr milliseconds found_out_within{320};
constexpr milliseconds entered_within{120};

milliseconds to_ms(std::string_view text) {
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return milliseconds(number);
}

}  // namespace

void judge::fail(std::string what) {
    if (verdict_.empty()) verdict_ = std::move(what);
}

void judge::data_lost(bool mistrusted) {
    data_lost_ = true;
    if (!mistrusted) overlap_excused_ = true;
    for (auto& [name, state] : locks_) {
        state.last_step.clear();
        state.line.clear();
        state.holder.clear();
        state.fence.clear();
        state.free_from = never;
    }
}

void judge::clock_jumped(nanoseconds by) {
    jumped_ = true;
    if (by < nanoseconds(0)) set_back_ = true;
    if (by > nanoseconds(0)) overlap_excused_ = true;
    for (auto& [name, state] : locks_) {
        if (state.free_from != never) state.free_from = std::max(state.free_from - by, time_.now());
    }
}

// --- the clients' side

std::shared_ptr<belief> judge::believes(belief fresh) {
    entered_.insert(fresh.id);
    ++cycles_;
    check_overlap(fresh);
    auto kept = std::make_shared<belief>(std::move(fresh));
    auto& all = beliefs_[kept->lock];
    std::erase_if(all, [this](const auto& b) { return b->over || b->until < time_.now(); });
    all.push_back(kept);
    return kept;
}

void judge::extended(belief& held, instant until) {
    const bool had_ended = held.until <= time_.now();
    held.until = until;
    if (!held.over && had_ended && until > time_.now()) check_overlap(held);
}

void judge::check_overlap(const belief& fresh) {
    for (const auto& other : beliefs_[fresh.lock]) {
        if (other->over || other->until <= time_.now() || other->id == fresh.id) continue;
        if (overlap_excused_) {
            // The grants' own order was checked when they were made; the one that learns of its grant last
            // may have the older one.
            const bool distinct =
                fresh.token == 0 || fresh.token != other->token || ((data_lost_ || vandalized_) && set_back_);
            if (distinct) continue;
        }
        fail("two believers of " + fresh.lock + ": " + other->id + " token " + std::to_string(other->token) + " and " +
             fresh.id + " token " + std::to_string(fresh.token));
    }
}

void judge::lost_without_reason(const belief& held) {
    if (!jumped_ && !data_lost_ && !vandalized_) fail("a calm holder lost " + held.lock + ": " + held.id);
}

void judge::foreign_took(const std::string& lock, instant until) {
    belief fresh{.lock = lock, .id = "foreign", .token = 0, .until = until};
    if (!data_lost_) check_overlap(fresh);  // it does not know that the server was restarted
    lock_state& state = locks_[lock];
    state.holder = "foreign";
    state.free_from = until;
}

void judge::foreign_left(const std::string& lock) {
    locks_[lock].free_from = time_.now();
}

// --- the server's side

// EVALSHA sha1 keys lock [queue waiters fence] id ...
judge::call judge::read(const words& command) const {
    call out{};
    for (const auto& script : scripts::all()) {
        if (script.sha1 != command[1] && script.text != command[1]) continue;
        out.what = script.name == "mutex/acquire"   ? step::acquire
                   : script.name == "mutex/release" ? step::release
                                                    : step::renew;
    }
    out.lock = command[3];
    if (out.what == step::renew) {
        out.id = command[4];
        return out;
    }
    out.queue = command[4];
    out.fence = command[6];
    out.id = command[7];
    if (out.what == step::acquire) out.interval = to_ms(command[13]);
    return out;
}

std::string judge::get(const std::string& key) {
    return watched->run({"GET", key}).text;
}

void judge::before_script(const words& command) {
    const call asked = read(command);
    lock_state& state = locks_[asked.lock];
    state.holder = get(asked.lock);
    if (asked.what != step::renew) state.fence = get(asked.fence);
}

void judge::after_script(const words& command, const value& answer) {
    const call asked = read(command);
    if (trace) {
        constexpr std::string_view names[] = {"acquire", "release", "renew"};
        trace("  " + std::string(names[static_cast<std::size_t>(asked.what)]) + " " + asked.lock + " by " + asked.id +
              ": " + answer.to_string());
    }
    if (answer.is_error()) return;
    lock_state& state = locks_[asked.lock];
    const std::string holder = get(asked.lock);
    check_step(asked, state, holder);
    if (asked.what == step::renew) {
        if (holder == asked.id)
            state.free_from = time_.now() + milliseconds(watched->run({"PTTL", asked.lock}).integer);
        return;
    }
    if (state.holder.empty()) check_slow(state);
    const std::string fence = get(asked.fence);
    state.last_step[asked.id] = asked.what;
    const bool fresh = !holder.empty() && (holder != state.holder || fence != state.fence);
    const bool was_free = state.holder.empty();
    state.fence = fence;
    if (fresh) granted(asked, state, holder);
    if (holder.empty()) {
        if (!was_free) state.free_from = time_.now();
    } else {
        const auto left = watched->run({"PTTL", asked.lock}).integer;
        state.free_from = left < 0 ? never : time_.now() + milliseconds(left);
    }
    state.holder = holder;
    update_line(asked, state);
}

void judge::check_step(const call& asked, const lock_state& was, const std::string& holder) {
    if (asked.what == step::renew && holder != was.holder) fail("a renewal changed the holder: " + asked.id);
    if (asked.what == step::acquire && !was.holder.empty() && holder != was.holder)
        fail("the lock was taken from " + was.holder + " by " + asked.id);
    if (asked.what == step::release && !was.holder.empty() && was.holder != asked.id && holder != was.holder)
        fail("the hold of " + was.holder + " was released by " + asked.id);
}

bool judge::calm(const lock_state& state, const std::string& id) const {
    const auto found = state.known.find(id);
    return found != state.known.end() && calm_since(engine::client_of(id), found->second.arrived);
}

void judge::check_slow(const lock_state& was) {
    if (was.free_from == never || vandalized_) return;
    for (const std::string& id : was.line) {
        const auto found = was.known.find(id);
        if (found == was.known.end() || found->second.arrived > was.free_from || !calm(was, id)) continue;
        const milliseconds allowed = found_out_within + (id == was.line[0] ? milliseconds(0) : found->second.interval);
        if (time_.now() - was.free_from > allowed) fail("the lock was free for too long while " + id + " waited");
    }
}

void judge::granted(const call& asked, lock_state& state, const std::string& id) {
    if (trace) trace("  grant to " + id + " token " + state.fence);
    check_token(asked, state, id);
    check_order(state, id);
    if (id == asked.id) return;
    if (!watched->listens("hf:wake:" + std::string(engine::client_of(id))))
        fail("the lock was handed to one that is gone: " + id);
    // An older snapshot may bring back a place in line that a release by token leaves alone.
    if (!data_lost_ && state.last_step[id] == step::release)
        fail("the lock was handed to one that had given up: " + id);
    if (calm(state, id)) expect_entry(asked.lock, id);
}

void judge::check_token(const call&, lock_state& state, const std::string& id) {
    double token = 0;
    std::from_chars(state.fence.data(), state.fence.data() + state.fence.size(), token);
    const bool excused = (data_lost_ || vandalized_) && set_back_;
    if (token <= state.highest_token && !excused) fail("a token did not grow: " + state.fence + " for " + id);
    state.highest_token = std::max(token, state.highest_token);
}

void judge::check_order(const lock_state& state, const std::string& id) {
    const auto mine = state.known.find(id);
    for (const std::string& other : state.line) {
        const auto found = state.known.find(other);
        if (other == id || found == state.known.end() || vandalized_ || (data_lost_ && set_back_)) continue;
        if (mine != state.known.end() && mine->second.number < found->second.number) continue;
        const auto last = state.last_step.find(other);
        if (last != state.last_step.end() && last->second == step::release) continue;
        if (calm(state, other)) fail(other + " was passed over by " + id);
    }
}

void judge::expect_entry(const std::string& lock, const std::string& id) {
    time_.after(entered_within, [this, lock, id, since = time_.now()] {
        if (entered_.contains(id) || locks_[lock].last_step[id] == step::release) return;
        if (get(lock) != id || !calm_since(engine::client_of(id), since)) return;
        fail("handed to " + id + ", who did not enter");
    });
}

void judge::update_line(const call& asked, lock_state& state) {
    state.line.clear();
    for (const value& item : watched->run({"ZRANGE", asked.queue, "0", "-1"}).items) {
        state.line.push_back(item.text);
        if (state.known.contains(item.text)) continue;
        state.known[item.text] = {time_.now(), next_number_++, asked.interval};
    }
}

}  // namespace holdfast::sim
