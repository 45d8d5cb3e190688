#include "engine/local/local_grants.hpp"

#include "base/assert.hpp"

namespace holdfast::engine::local {
namespace {

constexpr milliseconds longest_passing{10};

std::shared_ptr<const refusal> because(errc why, std::string detail = {}) {
    return std::make_shared<const refusal>(refusal{why, std::move(detail), {}, {}});
}

}  // namespace

// --- questions

claim* local_grants::find(owner_id owner) noexcept {
    if (owner == owner_id::nobody) return nullptr;
    const auto is_mine = [owner](const claim& c) { return c.owner == owner; };
    for (list* const all : {&users_, &lost_}) {
        const auto found = std::find_if(all->begin(), all->end(), is_mine);
        if (found != all->end()) return &*found;
    }
    return nullptr;
}

held* local_grants::find_hold(std::uint64_t number) noexcept {
    for (const auto& h : holds_) {
        if (h->number == number) return h.get();
    }
    return nullptr;
}

bool local_grants::is_used(std::uint64_t hold) const noexcept {
    return std::ranges::any_of(holds_, [hold](const auto& h) { return h->number == hold && h->users > 0; });
}

instant local_grants::bound_of(const held& h) const noexcept {
    return h.wanted_at + std::min<std::chrono::nanoseconds>(longest_passing, settings_.lease / 10);
}

bool local_grants::has_number(const held& h, access mode) const noexcept {
    return h.last < h.ceiling || (mode == access::shared && h.readers != 0);
}

bool local_grants::is_half_used(const held& h) const noexcept {
    return h.marked && h.mode == access::exclusive && (h.ceiling - h.last) * 2 < h.block;
}

// No renewal will help.
bool local_grants::is_used_up(const held& h, access mode) const noexcept {
    return !h.marked && !has_number(h, mode);
}

instant local_grants::fresh_until(const held& h) const noexcept {
    if (h.proved_at == instant{}) return {};
    return std::min<instant>(h.valid_until - settings_.lease / 3, h.proved_at + settings_.lease / 2);
}

bool local_grants::is_fresh(const held& h, access mode, instant now) const noexcept {
    return now < fresh_until(h) && has_number(h, mode);
}

bool local_grants::may_grant(const held& h, access mode, instant now) const noexcept {
    if (h.was_granted) return is_fresh(h, mode, now);
    return h.proved_at != instant{} && now < h.valid_until && has_number(h, mode);
}

// By mode. The order among those who wait is another question.
bool local_grants::fits(const held& h, const claim& c) const noexcept {
    if (h.retiring || h.upgrader != nullptr) return false;
    if (c.want == access::shared) return h.writers == 0;
    return h.mode == access::exclusive && h.users == 0;
}

bool local_grants::in_bound(const held& h, const claim& c, instant now) const noexcept {
    if (!h.is_wanted() || !h.was_granted) return true;
    if (is_used_up(h, c.want)) return false;
    return now < bound_of(h) && (c.early_for == h.number || h.passes < settings_.passes);
}

// How many of those who wait will be served before the hold is released.
std::size_t local_grants::can_serve(const held& h, instant now) const noexcept {
    const std::size_t first = h.was_granted ? 0 : 1;
    std::size_t served = waiting_.size();
    if (h.is_wanted()) {
        const std::size_t in_time = now < bound_of(h) ? h.early + (settings_.passes - h.passes) : 0;
        served = std::min(served, first + in_time);
    }
    return h.retiring || is_used_up(h, h.mode) ? 0 : served;
}

// Whether it would be the next to be served if it waited from now on.
bool local_grants::is_next(const claim& wish) const noexcept {
    const std::size_t writers = waiting_.size() - readers_waiting_;
    if (settings_.prefer == preference::readers && wish.want == access::shared) return readers_waiting_ == 0;
    if (settings_.prefer == preference::writers && wish.want == access::exclusive) return writers == 0;
    return waiting_.empty();
}

claim* local_grants::next() noexcept {
    if (waiting_.empty()) return nullptr;
    if (settings_.prefer == preference::arrival || settings_.kind == lock_kind::mutex) return &waiting_.front();
    const access first = settings_.prefer == preference::readers ? access::shared : access::exclusive;
    const auto found = std::ranges::find_if(waiting_, [first](const claim& c) { return c.want == first; });
    return found == waiting_.end() ? &waiting_.front() : &*found;
}

// --- requests of owners

outcome local_grants::acquire(claim& wish, instant now, effects& out) {
    if (claim* const mine = find(wish.owner)) return reenter(*mine, wish, now, out);
    wish.is = claim::state::waiting;
    wish.early_for = 0;
    if (current_ != nullptr && fits(*current_, wish) && is_next(wish) && in_bound(*current_, wish, now) &&
        may_grant(*current_, wish.want, now)) {
        grant(*current_, wish, now);
        if (is_half_used(*current_)) want_renewal(*current_, now, out);
        return {outcome::verdict::granted, &wish};
    }
    if (const auto why = why_not_now(wish)) {
        wish.is = claim::state::over;
        return {outcome::verdict::refused, nullptr, *why};
    }
    // A try never stands in a queue, unless only a renewal is missing.
    const bool tries = wish.limit.wait == waiting::not_at_all &&
                       (current_ == nullptr || !fits(*current_, wish) || !in_bound(*current_, wish, now));
    if (tries) {
        wish.is = claim::state::trying;
        trying_.push_back(wish);
        give_back_unused(now, out);  // a read hold is in the way of our own writer
        ask(wish.want, &wish, wish.limit, out);
    } else {
        wait(wish, out);
    }
    settle(now, out);
    return {outcome::verdict::waits};
}

// A try is refused by what owners of this process do; anything else only the server knows.
std::optional<errc> local_grants::why_not_now(const claim& wish) const {
    if (wish.limit.wait != waiting::not_at_all || current_ == nullptr || current_->retiring) return std::nullopt;
    const held& h = *current_;
    if (settings_.kind == lock_kind::mutex) return h.users > 0 ? std::optional(errc::busy) : std::nullopt;
    if (h.writers > 0) return errc::write_held;
    if (wish.want == access::exclusive) return h.users > 0 ? std::optional(errc::read_held) : std::nullopt;
    const bool writer_waits = waiting_.size() > readers_waiting_ || h.upgrader != nullptr;
    const bool is_behind = h.upgrader != nullptr || (writer_waits && settings_.prefer != preference::readers);
    return h.users > 0 && is_behind ? std::optional(errc::reserved) : std::nullopt;
}

outcome local_grants::reenter(claim& mine, claim& wish, instant now, effects& out) {
    if (mine.is == claim::state::lost || now >= mine.of->valid_until) {
        return {outcome::verdict::refused, nullptr, errc::lost};
    }
    if (mine.exclusive + mine.shared >= settings_.max_depth) {
        return {outcome::verdict::refused, nullptr, errc::too_deep};
    }
    if (wish.want == access::exclusive && mine.exclusive == 0) return upgrade(mine, wish, now, out);
    ++mine.levels(wish.want);
    wish.is = claim::state::over;
    return {outcome::verdict::reentered, &mine};
}

outcome local_grants::upgrade(claim& reading, claim& waiter, instant now, effects& out) {
    if (reading.is == claim::state::lost) return {outcome::verdict::refused, nullptr, errc::lost};
    if (reading.is != claim::state::holding) return {outcome::verdict::refused, nullptr, errc::not_held};
    held& h = *reading.of;
    if (reading.exclusive > 0) {
        ++reading.exclusive;
        return {outcome::verdict::reentered, &reading};
    }
    // Two who read and wait for each other's end.
    if (h.upgrader != nullptr) {
        const bool is_same = h.upgrader->upgrades == &reading;
        return {outcome::verdict::refused, nullptr, is_same ? errc::too_many : errc::would_deadlock};
    }
    if (waiter.limit.wait == waiting::not_at_all && h.users > 1) {
        return {outcome::verdict::refused, nullptr, errc::read_held};
    }
    waiter.is = claim::state::upgrading;
    waiter.upgrades = &reading;
    waiter.want = access::exclusive;
    h.upgrader = &waiter;
    arm_at(waiter.limit.deadline, out);
    settle(now, out);
    return {outcome::verdict::waits};
}

void local_grants::step_upgrade(held& h, instant now, effects& out) {
    if (h.upgrader == nullptr || h.upgrade != upgrade_request::none || h.users > 1) return;
    if (h.mode == access::exclusive && is_used_up(h, access::exclusive)) {
        // It is only read now. To write again it needs a new grant.
        h.mode = access::shared;
        h.readers = h.last;
        out.push_back({.what = effect::kind::downgrade, .number = h.number});
    }
    if (h.mode == access::exclusive) {
        if (!is_fresh(h, access::exclusive, now)) return want_renewal(h, now, out);
        return finish_upgrade(h, out, now);
    }
    h.upgrade = upgrade_request::asked;
    out.push_back({.what = effect::kind::upgrade, .number = h.number, .limit = h.upgrader->limit});
}

void local_grants::finish_upgrade(held& h, effects& out, instant now) {
    claim& waiter = *std::exchange(h.upgrader, nullptr);
    claim& mine = *waiter.upgrades;
    waiter.is = claim::state::over;
    mine.exclusive = 1;
    mine.token = 0;
    mine.granted_at = now;
    h.writers = 1;
    h.readers = 0;
    out.push_back({.what = effect::kind::granted, .who = &waiter});
}

std::optional<errc> local_grants::release(claim& mine, access level, instant now, effects& out) {
    if (mine.is == claim::state::lost) {
        if (mine.levels(level) == 0) return errc::held_other_mode;
        --mine.levels(level);
        if (!mine.is_released()) return errc::lost;
        end_lost(mine);
        settle(now, out);
        return errc::lost;
    }
    if (mine.is != claim::state::holding) return errc::not_held;
    if (mine.levels(level) == 0) return errc::held_other_mode;
    held& h = *mine.of;
    --mine.levels(level);
    if (mine.exclusive > 0) return std::nullopt;
    if (level == access::exclusive) --h.writers;
    if (!mine.is_released()) {
        if (level == access::exclusive) stops_writing(h, mine);
        settle(now, out);
        return std::nullopt;
    }
    if (h.upgrader != nullptr && h.upgrader->upgrades == &mine) cancel(*h.upgrader, errc::not_held, now, out);
    mine.is = claim::state::over;
    mine.of = nullptr;
    users_.erase(users_.iterator_to(mine));
    if (--h.users == 0) is_unused(h, now);
    settle(now, out);
    return std::nullopt;
}

void local_grants::is_unused(held& h, instant now) noexcept {
    h.unused_since = now;
    h.readers = h.mode == access::shared ? h.readers : 0;
}

void local_grants::end_lost(claim& mine) noexcept {
    mine.is = claim::state::over;
    lost_.erase(lost_.iterator_to(mine));
    --std::exchange(mine.of, nullptr)->users;
}

// It reads from now on, with a number of its own: readers' tokens are larger than those of writers before them.
void local_grants::stops_writing(held& h, claim& c) noexcept {
    h.readers = 0;
    if (h.last < h.ceiling) c.token = 0;
}

std::optional<errc> local_grants::downgrade(claim& mine, instant now, effects& out) {
    if (mine.exclusive > 0) ++mine.shared;
    return release(mine, access::exclusive, now, out);
}

void local_grants::wait(claim& wish, effects& out) {
    latest_deadline_ = waiting_.empty() ? wish.limit.deadline : std::max(latest_deadline_, wish.limit.deadline);
    waiting_.push_back(wish);
    if (wish.want == access::shared) ++readers_waiting_;
    arm_at(wish.limit.deadline, out);
}

void local_grants::unlink(claim& waiter) noexcept {
    if (waiter.is == claim::state::trying) return trying_.erase(trying_.iterator_to(waiter)), void();
    if (waiter.is != claim::state::waiting) return;
    waiting_.erase(waiting_.iterator_to(waiter));
    if (waiter.want == access::shared) --readers_waiting_;
    if (current_ != nullptr && waiter.early_for == current_->number) --current_->early;
}

void local_grants::refuse(claim& waiter, std::shared_ptr<const refusal> why, effects& out) {
    unlink(waiter);
    waiter.is = claim::state::over;
    out.push_back({.what = effect::kind::refused, .who = &waiter, .why = std::move(why)});
}

void local_grants::refuse(claim& waiter, errc why, effects& out) {
    refuse(waiter, because(why), out);
}

void local_grants::cancel(claim& waiter, errc why, instant now, effects& out) {
    if (waiter.is == claim::state::upgrading) {
        held& h = *waiter.upgrades->of;
        h.upgrader = nullptr;
        if (h.upgrade == upgrade_request::asked) {
            h.upgrade = upgrade_request::cancelled;
            out.push_back({.what = effect::kind::cancel_upgrade, .number = h.number});
        }
    } else if (waiter.is == claim::state::trying) {
        for (asked& one : asks_) {
            if (one.tries != &waiter) continue;
            one.tries = nullptr;
            one.cancelled = true;
            out.push_back({.what = effect::kind::cancel, .number = one.number});
        }
    } else if (waiter.is != claim::state::waiting) {
        return;
    }
    refuse(waiter, why, out);
    settle(now, out);
}

// The server's answer comes at the deadline, too, and says more.
bool local_grants::is_answer_due(const claim& waiter) const noexcept {
    return std::ranges::any_of(asks_, [&](const asked& one) {
        return one.tries == nullptr && !one.cancelled && one.deadline <= waiter.limit.deadline;
    });
}

errc local_grants::late(const claim& waiter) noexcept {
    return waiter.limit.wait == waiting::not_at_all ? errc::request_timed_out : errc::timed_out;
}

fencing_token local_grants::token_of(claim& mine, instant now, effects& out) {
    if (mine.token != 0 || mine.is != claim::state::holding) return mine.token;
    held& h = *mine.of;
    if (mine.exclusive > 0) {
        mine.token = ++h.last;
    } else {
        if (h.readers == 0) h.readers = ++h.last;
        mine.token = h.readers;
    }
    HOLDFAST_ASSERT(h.last <= h.ceiling);
    // Ahead of the need, so that nobody waits for numbers.
    if (is_half_used(h)) want_renewal(h, now, out);
    return mine.token;
}

claim* local_grants::abandon(owner_id owner, instant now, effects& out) {
    claim* const mine = find(owner);
    if (mine == nullptr) return nullptr;
    if (mine->is == claim::state::lost) {
        end_lost(*mine);
        settle(now, out);
        return mine;
    }
    held& h = *mine->of;
    if (h.upgrader != nullptr && h.upgrader->upgrades == mine) cancel(*h.upgrader, errc::not_held, now, out);
    users_.erase(users_.iterator_to(*mine));
    if (mine->exclusive > 0) --h.writers;
    --h.users;
    mine->is = claim::state::over;
    mine->of = nullptr;
    h.retiring = true;
    h.orphaned = true;
    settle(now, out);
    return mine;
}

// --- granting

void local_grants::grant(held& h, claim& c, instant now) {
    if (h.was_granted) {
        ++counted_.grants;
        if (h.is_wanted()) ++counted_.passes;
        if (h.is_wanted() && c.early_for != h.number) ++h.passes;
    }
    h.was_granted = true;
    c.is = claim::state::holding;
    c.of = &h;
    c.token = 0;
    c.granted_at = now;
    ++c.levels(c.want);
    ++h.users;
    if (c.want == access::exclusive) {
        ++h.writers;
        h.readers = 0;
    }
    users_.push_front(c);
}

void local_grants::serve(instant now, effects& out) {
    if (current_ == nullptr) return;
    while (claim* const c = next()) {
        if (!fits(*current_, *c) || !in_bound(*current_, *c, now)) return;
        if (!may_grant(*current_, c->want, now)) return want_renewal(*current_, now, out);
        unlink(*c);
        grant(*current_, *c, now);
        out.push_back({.what = effect::kind::granted, .who = c});
    }
}

void local_grants::want_renewal(held& h, instant now, effects& out) {
    if (h.renewing) return;
    if (now < h.renew_from) return arm_at(h.renew_from, out);
    h.renewing = true;
    out.push_back({.what = effect::kind::renew, .number = h.number});
}

// By a renewal that was asked for here, or by the engine's own. While a slot of a Cluster moves it brings no numbers:
// then it is not repeated as fast as the server answers.
void local_grants::is_answered(held& h, instant now) const noexcept {
    h.renewing = false;
    h.renew_from = is_fresh(h, h.mode, now) ? instant{} : now + settings_.lease / 10;
}

// --- giving back

// An unused hold.
bool local_grants::stays(const held& h, instant now) noexcept {
    if (&h != current_ || h.retiring) return false;
    const claim* const first = next();
    if (first != nullptr) return fits(h, *first) && in_bound(h, *first, now);  // only a renewal is missing
    const bool writer_tries = std::ranges::any_of(trying_, [](const claim& c) { return c.want == access::exclusive; });
    if (h.mode == access::shared && writer_tries) return false;
    return !h.is_wanted() && !closing_ && now - h.unused_since < settings_.keep;
}

void local_grants::give_back_unused(instant now, effects& out) {
    for (std::size_t i = 0; i < holds_.size();) {
        held& h = *holds_[i];
        if (h.users > 0) {
            downgrade_if_only_read(h, now, out);
        } else if (!stays(h, now)) {
            if (h.is_wanted()) ++counted_.give_backs;
            drop(h, h.orphaned ? effect::kind::abandon : effect::kind::release, out);
            continue;
        }
        ++i;
    }
}

// Somebody else may want to read, and our readers do not exclude that.
void local_grants::downgrade_if_only_read(held& h, instant now, effects& out) {
    if (h.lost || !h.is_wanted() || h.mode == access::shared || h.writers > 0 || h.upgrader != nullptr) return;
    const claim* const first = &h == current_ ? next() : nullptr;
    if (first != nullptr && first->want == access::exclusive && in_bound(h, *first, now)) return;
    if (h.readers == 0 && h.last < h.ceiling) h.readers = ++h.last;
    h.mode = access::shared;
    out.push_back({.what = effect::kind::downgrade, .number = h.number});
}

void local_grants::drop(held& h, effect::kind how, effects& out) {
    out.push_back({.what = how, .number = h.number, .at = h.lost || h.users > 0 ? never : h.unused_since});
    if (current_ == &h) current_ = nullptr;
    std::erase_if(holds_, [&h](const auto& one) { return one.get() == &h; });
}

// --- positions at the server

local_grants::demand local_grants::wanted_positions(instant now) noexcept {
    demand all;
    std::size_t served = current_ == nullptr ? 0 : can_serve(*current_, now);
    if (waiting_.size() <= served && (current_ == nullptr || current_->mode == access::exclusive)) return all;
    const bool reads = current_ != nullptr && current_->mode == access::shared;
    const claim* const first = next();
    if (reads && (first == nullptr || first->want == access::exclusive) && settings_.prefer != preference::readers) {
        served = 0;  // readers behind a writer wait for the writer
    }
    const bool one_each = settings_.passes == 0 && contended_;
    for (const claim& c : waiting_) {
        if (served > 0 && (!reads || c.want == access::shared)) {
            --served;
            continue;
        }
        if (one_each || all.of(c.want) == 0) ++all.of(c.want);
        if (!one_each && settings_.prefer == preference::arrival) return all;
        if (!one_each && settings_.kind == lock_kind::mutex) return all;
    }
    return all;
}

void local_grants::ask(access mode, claim* tries, patience limit, effects& out) {
    const std::uint64_t number = next_number_++;
    asks_.push_back({number, mode, limit.deadline, tries});
    out.push_back({.what = effect::kind::ask, .mode = mode, .number = number, .limit = limit});
}

void local_grants::place_asks(instant now, effects& out) {
    if (waiting_.empty() && asks_.empty()) return;
    // A try that waited for a renewal, and the hold is gone: its answer comes from the server.
    if (current_ == nullptr) {
        for (auto next = waiting_.begin(); next != waiting_.end();) {
            claim& c = *next++;
            if (c.limit.wait != waiting::not_at_all) continue;
            unlink(c);
            c.is = claim::state::trying;
            trying_.push_back(c);
            ask(c.want, &c, c.limit, out);
        }
    }
    demand missing = wanted_positions(now);
    const instant latest = latest_deadline_;
    for (asked& one : asks_) {
        if (one.tries != nullptr || one.cancelled) continue;
        if (missing.of(one.mode) == 0) {
            one.cancelled = true;
            out.push_back({.what = effect::kind::cancel, .number = one.number});
            continue;
        }
        --missing.of(one.mode);
        if (one.deadline >= latest) continue;
        one.deadline = latest;
        out.push_back({.what = effect::kind::extend, .number = one.number, .limit = {waiting::in_queue, latest}});
    }
    for (const access mode : {access::exclusive, access::shared}) {
        for (; missing.of(mode) > 0; --missing.of(mode)) ask(mode, nullptr, {waiting::in_queue, latest}, out);
    }
}

// --- after every event

void local_grants::settle(instant now, effects& out) {
    for (const auto& h : holds_) step_upgrade(*h, now, out);
    serve(now, out);
    give_back_unused(now, out);
    place_asks(now, out);
    arm(now, out);
}

void local_grants::arm(instant now, effects& out) {
    if (current_ == nullptr) return;
    // Those without a claim release unseen.
    const instant unused = current_->fast > 0 ? now : current_->unused_since;
    if (current_->users == current_->fast && waiting_.empty()) arm_at(unused + settings_.keep, out);
    // Then those who wait need a position, and a hold that is only read is made less.
    const instant bound = current_->is_wanted() ? bound_of(*current_) : never;
    if (bound > now) arm_at(bound, out);
}

void local_grants::arm_at(instant when, effects& out) {
    if (when >= armed_) return;
    armed_ = when;
    out.push_back({.what = effect::kind::wake, .at = when});
}

void local_grants::on_timer(instant now, effects& out) {
    armed_ = never;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
        claim& c = *next++;
        if (c.limit.deadline > now || is_answer_due(c)) continue;
        refuse(c, late(c), out);
    }
    for (const auto& h : holds_) {
        claim* const waits = h->upgrader;
        if (waits == nullptr || waits->limit.deadline > now) continue;
        if (h->upgrade == upgrade_request::asked) continue;
        h->upgrader = nullptr;
        refuse(*waits, errc::timed_out, out);
    }
    settle(now, out);
    for (const claim& c : waiting_) {
        if (c.limit.deadline > now) arm_at(c.limit.deadline, out);
    }
    for (const auto& h : holds_) {
        const claim* const waits = h->upgrader;
        const bool is_asked = h->upgrade == upgrade_request::asked;
        if (waits != nullptr && !is_asked) arm_at(waits->limit.deadline, out);
    }
}

// --- answers

std::uint64_t local_grants::acquired(std::uint64_t answered, const hold_facts& facts, instant now, effects& out) {
    const auto found = std::ranges::find_if(asks_, [&](const asked& one) { return one.number == answered; });
    claim* const tries = found == asks_.end() ? nullptr : found->tries;
    if (found != asks_.end()) asks_.erase(found);
    if (current_ != nullptr) current_->retiring = true;
    held& h = *holds_.emplace_back(std::make_unique<held>());
    current_ = &h;
    h.number = next_number_++;
    h.mode = facts.mode;
    h.marked = facts.marked;
    h.valid_until = facts.valid_until;
    h.proved_at = facts.proved_at;
    h.last = facts.token - 1;
    h.ceiling = std::max(facts.ceiling, facts.token);
    h.block = h.ceiling - h.last;
    h.unused_since = now;
    // Nobody could ask for a hold without a mark. So it is used as if somebody had.
    if (facts.wanted || !facts.marked) h.wanted_at = now;
    contended_ = facts.wanted;
    if (tries != nullptr) {
        unlink(*tries);
        grant(h, *tries, now);
        out.push_back({.what = effect::kind::granted, .who = tries});
    }
    const std::uint64_t number = h.number;  // it may be released at once
    settle(now, out);
    return number;
}

void local_grants::ask_refused(std::uint64_t answered, std::shared_ptr<const refusal> why, instant now, effects& out) {
    const auto found = std::ranges::find_if(asks_, [&](const asked& one) { return one.number == answered; });
    if (found == asks_.end()) return;
    const asked one = *found;
    asks_.erase(found);
    if (one.tries != nullptr) refuse(*one.tries, std::move(why), out);
    if (one.tries == nullptr && !one.cancelled) {
        // The deadline of some, perhaps of one that is gone by now; or a reason that is as good for all.
        const bool is_deadline = why->code == errc::timed_out ||
                                 std::ranges::any_of(waiting_, [&](const claim& c) { return c.limit.deadline <= now; });
        for (auto next = waiting_.begin(); next != waiting_.end();) {
            claim& c = *next++;
            if (c.limit.deadline <= now || !is_deadline) refuse(c, why, out);
        }
    }
    settle(now, out);
}

void local_grants::upgraded(std::uint64_t hold, fencing_token token, fencing_token ceiling, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr) return;
    h->upgrade = upgrade_request::none;
    h->mode = access::exclusive;
    h->last = std::max(h->last, token - 1);
    h->ceiling = std::max({h->ceiling, ceiling, token});
    h->block = h->ceiling - h->last;
    h->readers = 0;
    // After a cancelled request it may be the next waiter, and others read meanwhile.
    if (h->upgrader != nullptr && h->users == 1) finish_upgrade(*h, out, now);
    settle(now, out);
}

void local_grants::upgrade_refused(std::uint64_t hold, std::shared_ptr<const refusal> why, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr) return;
    const bool was_cancelled = std::exchange(h->upgrade, upgrade_request::none) == upgrade_request::cancelled;
    if (h->upgrader != nullptr && !was_cancelled) refuse(*std::exchange(h->upgrader, nullptr), std::move(why), out);
    settle(now, out);
}

// --- what happens to a hold

void local_grants::on_validity(std::uint64_t hold, instant until, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr) return;
    h->valid_until = until;
    is_answered(*h, now);
    settle(now, out);
}

void local_grants::on_proof(std::uint64_t hold, instant at, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr) return;
    h->proved_at = at;
    is_answered(*h, now);
    // The link is new: nothing has been in vain there.
    if (at == instant{}) h->renew_from = {};
    // Renewals take longer than half of the lease. So no proof is ever young enough, and it is acquired anew.
    if (at != instant{} && h->was_granted && now >= at + settings_.lease / 2) h->retiring = true;
    settle(now, out);
}

void local_grants::on_ceiling(std::uint64_t hold, fencing_token ceiling, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr || h->mode == access::shared || ceiling <= h->ceiling) return;
    h->ceiling = ceiling;
    h->block = h->ceiling - h->last;
    is_answered(*h, now);
    settle(now, out);
}

void local_grants::on_wanted(std::uint64_t hold, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr || h->is_wanted()) return;
    h->wanted_at = now;
    contended_ = true;
    if (h == current_) {
        for (claim& c : waiting_) c.early_for = h->number;
        h->early = waiting_.size();
    }
    settle(now, out);
}

void local_grants::on_lost(std::uint64_t hold, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr) return;
    if (claim* const waiter = std::exchange(h->upgrader, nullptr)) refuse(*waiter, errc::lost, out);
    for (auto next = users_.begin(); next != users_.end();) {
        claim& c = *next++;
        if (c.of != h) continue;
        // The resource may still be asked with it, and refuses it if somebody else has been there.
        effects ignored;
        token_of(c, now, ignored);
        users_.erase(users_.iterator_to(c));
        c.is = claim::state::lost;
        lost_.push_back(c);
        out.push_back({.what = effect::kind::lost, .who = &c});
    }
    h->lost = h->retiring = true;
    h->writers = 0;
    if (current_ == h) current_ = nullptr;
    settle(now, out);
}

// --- the fast path

std::optional<fast_terms> local_grants::fast_path(instant now) const noexcept {
    if (current_ == nullptr || closing_ || !waiting_.empty() || !trying_.empty()) return std::nullopt;
    if (settings_.keep <= std::chrono::nanoseconds(0)) return std::nullopt;  // the last release gives it back
    const held& h = *current_;
    const bool is_exclusive = fast_mode() == access::exclusive;
    if (!h.was_granted || h.retiring || h.orphaned || h.is_wanted() || h.upgrader != nullptr) return std::nullopt;
    if (is_exclusive ? h.users > h.fast : h.writers > 0) return std::nullopt;
    if (!is_fresh(h, fast_mode(), now)) return std::nullopt;
    return fast_terms{h.number, fresh_until(h)};
}

void local_grants::count_in(std::uint64_t hold, unsigned users, instant used) noexcept {
    held* const h = find_hold(hold);
    HOLDFAST_ASSERT(h != nullptr && h->fast == 0);
    h->fast = users;
    h->users += users;
    if (fast_mode() == access::exclusive) h->writers += users;
    h->unused_since = std::max(h->unused_since, used);
}

void local_grants::count_out(std::uint64_t hold) noexcept {
    held* const h = find_hold(hold);
    HOLDFAST_ASSERT(h != nullptr);
    if (fast_mode() == access::exclusive) h->writers -= h->fast;
    h->users -= std::exchange(h->fast, 0);
}

std::optional<errc> local_grants::release_fast(std::uint64_t hold, instant now, effects& out) {
    held* const h = find_hold(hold);
    HOLDFAST_ASSERT(h != nullptr && h->fast > 0);
    --h->fast;
    if (fast_mode() == access::exclusive && !h->lost) --h->writers;
    const bool was_lost = h->lost;
    if (--h->users == 0 && !was_lost) is_unused(*h, now);
    settle(now, out);
    return was_lost ? std::optional(errc::lost) : std::nullopt;
}

void local_grants::adopt(std::uint64_t hold, claim& mine, unsigned levels) {
    held* const h = find_hold(hold);
    HOLDFAST_ASSERT(h != nullptr && h->fast > 0 && find(mine.owner) == nullptr);
    --h->fast;
    mine.of = h;
    mine.want = fast_mode();
    mine.levels(fast_mode()) = levels;
    mine.is = h->lost ? claim::state::lost : claim::state::holding;
    (h->lost ? lost_ : users_).push_front(mine);
}

// --- the lock objects

void local_grants::close(instant now, effects& out) {
    closing_ = true;
    settle(now, out);
}

void local_grants::give_back(instant now, effects& out) {
    if (current_ != nullptr && current_->users == 0 && waiting_.empty()) current_->retiring = true;
    settle(now, out);
}

void local_grants::check() const {
    HOLDFAST_ASSERT(current_ == nullptr || current_ == holds_.back().get());
    std::size_t users = 0;
    for (const auto& h : holds_) {
        if (h->lost) continue;
        users += h->users - h->fast;
        HOLDFAST_ASSERT(h->fast <= h->users && (h->fast == 0 || fast_mode() == access::shared || h->fast == 1));
        HOLDFAST_ASSERT(h->writers <= 1 && (h->writers == 0 || h->users == 1));
        HOLDFAST_ASSERT(h->last <= h->ceiling);
        HOLDFAST_ASSERT(h->users > 0 || h.get() == current_ || h->upgrade != upgrade_request::none);
    }
    HOLDFAST_ASSERT(users == users_.size());
    HOLDFAST_ASSERT(readers_waiting_ <= waiting_.size());
}

}  // namespace holdfast::engine::local
