#include "engine/local/local_grants.hpp"

#include "base/assert.hpp"

namespace holdfast::engine::local {
namespace {

std::shared_ptr<const refusal> because(errc why, std::string detail = {}) {
    return std::make_shared<const refusal>(refusal{why, std::move(detail), {}, {}});
}

errc late(const claim& waiter) noexcept {
    return waiter.limit.wait == waiting::not_at_all ? errc::request_timed_out : errc::timed_out;
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

// --- requests of owners

outcome local_grants::acquire(claim& wish, instant now, effects& out) {
    if (claim* const mine = find(wish.owner)) return reenter(*mine, wish, now, out);
    wish.is = claim::state::waiting;
    wish.early_for = 0;
    const bool suits = current_ != nullptr && current_->fits(wish.want) && current_->in_bound(wish, now);
    if (suits && waiting_.would_be_next(wish) && current_->may_grant(wish.want, now)) {
        current_->grant(wish, now, counted_);
        users_.push_front(wish);
        if (current_->is_half_used()) want_renewal(*current_, now, out);
        return {outcome::verdict::granted, &wish};
    }
    const bool tries = wish.limit.wait == waiting::not_at_all;
    // A try is refused by what owners of this process do; anything else only the server knows.
    const auto why = tries && current_ ? current_->why_not_now(wish.want, waiting_.has_writer()) : std::nullopt;
    if (why) {
        wish.is = claim::state::over;
        return {outcome::verdict::refused, nullptr, *why};
    }
    // A try never stands in a queue, unless only a renewal is missing.
    if (tries && !suits) {
        positions_.add_try(wish);
        give_back_unused(now, out);  // a read hold is in the way of our own writer
        positions_.ask_for(wish, out);
    } else {
        wait(wish, out);
    }
    settle(now, out);
    return {outcome::verdict::waits};
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
    if (h.mode == access::exclusive && h.is_used_up(access::exclusive)) {
        // It is only read now. To write again it needs a new grant.
        h.mode = access::shared;
        h.readers = h.last;
        out.push_back({.what = effect::kind::downgrade, .number = h.number});
    }
    if (h.mode == access::exclusive) {
        if (!h.is_fresh(access::exclusive, now)) return want_renewal(h, now, out);
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
        if (level == access::exclusive) h.stops_writing(mine);
        settle(now, out);
        return std::nullopt;
    }
    end_upgrade_of(mine, now, out);
    mine.is = claim::state::over;
    mine.of = nullptr;
    users_.erase(users_.iterator_to(mine));
    if (--h.users == 0) h.is_unused(now);
    settle(now, out);
    return std::nullopt;
}

// Its reader goes.
void local_grants::end_upgrade_of(const claim& reading, instant now, effects& out) {
    claim* const waiter = reading.of->upgrader;
    if (waiter != nullptr && waiter->upgrades == &reading) cancel(*waiter, errc::not_held, now, out);
}

void local_grants::end_lost(claim& mine) noexcept {
    mine.is = claim::state::over;
    lost_.erase(lost_.iterator_to(mine));
    --std::exchange(mine.of, nullptr)->users;
}

std::optional<errc> local_grants::downgrade(claim& mine, instant now, effects& out) {
    if (mine.exclusive > 0) ++mine.shared;
    return release(mine, access::exclusive, now, out);
}

void local_grants::wait(claim& wish, effects& out) {
    waiting_.add(wish);
    arm_at(wish.limit.deadline, out);
}

void local_grants::unlink(claim& waiter) noexcept {
    if (waiter.is == claim::state::trying) return positions_.remove_try(waiter);
    if (waiter.is != claim::state::waiting) return;
    waiting_.remove(waiter);
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
        positions_.give_up(waiter, out);
    } else if (waiter.is != claim::state::waiting) {
        return;
    }
    refuse(waiter, why, out);
    settle(now, out);
}

fencing_token local_grants::token_of(claim& mine, instant now, effects& out) {
    if (mine.token != 0 || mine.is != claim::state::holding) return mine.token;
    held& h = *mine.of;
    mine.token = h.take_number(mine);
    // Ahead of the need, so that nobody waits for numbers.
    if (h.is_half_used()) want_renewal(h, now, out);
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
    end_upgrade_of(*mine, now, out);
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

void local_grants::serve(instant now, effects& out) {
    if (current_ == nullptr) return;
    while (claim* const c = waiting_.next()) {
        if (!current_->fits(c->want) || !current_->in_bound(*c, now)) return;
        if (!current_->may_grant(c->want, now)) return want_renewal(*current_, now, out);
        unlink(*c);
        current_->grant(*c, now, counted_);
        users_.push_front(*c);
        out.push_back({.what = effect::kind::granted, .who = c});
    }
}

void local_grants::want_renewal(held& h, instant now, effects& out) {
    if (h.renewing) return;
    if (now < h.renew_from) return arm_at(h.renew_from, out);
    h.renewing = true;
    out.push_back({.what = effect::kind::renew, .number = h.number});
}

// --- giving back

// An unused hold.
bool local_grants::stays(const held& h, instant now) const noexcept {
    if (&h != current_ || h.retiring) return false;
    const claim* const first = waiting_.next();
    if (first != nullptr) return h.fits(first->want) && h.in_bound(*first, now);  // only a renewal is missing
    if (h.mode == access::shared && positions_.writer_tries()) return false;
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
    const claim* const first = &h == current_ ? waiting_.next() : nullptr;
    if (first != nullptr && first->want == access::exclusive && h.in_bound(*first, now)) return;
    h.make_shared();
    out.push_back({.what = effect::kind::downgrade, .number = h.number});
}

void local_grants::drop(held& h, effect::kind how, effects& out) {
    out.push_back({.what = how, .number = h.number, .at = h.lost || h.users > 0 ? never : h.unused_since});
    if (current_ == &h) current_ = nullptr;
    std::erase_if(holds_, [&h](const auto& one) { return one.get() == &h; });
}

// --- after every event

void local_grants::settle(instant now, effects& out) {
    for (const auto& h : holds_) step_upgrade(*h, now, out);
    serve(now, out);
    give_back_unused(now, out);
    positions_.place(waiting_, current_, now, out);
    arm(now, out);
}

void local_grants::arm(instant now, effects& out) {
    if (current_ == nullptr) return;
    // Those without a claim release unseen.
    const instant unused = current_->fast > 0 ? now : current_->unused_since;
    if (current_->users == current_->fast && waiting_.empty()) arm_at(unused + settings_.keep, out);
    // Then those who wait need a position, and a hold that is only read is made less.
    const instant bound = current_->is_wanted() ? current_->bound() : never;
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
        if (c.limit.deadline > now || positions_.is_answer_due(c)) continue;
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

std::uint64_t local_grants::acquired(std::uint64_t ask, const hold_facts& facts, instant now, effects& out) {
    const auto answered = positions_.take(ask);
    if (current_ != nullptr) current_->retiring = true;
    held& h = *holds_.emplace_back(std::make_unique<held>(settings_, ++last_hold_, facts, now));
    current_ = &h;
    positions_.others_wait(facts.wanted);
    if (answered && answered->tries != nullptr) {
        claim& tries = *answered->tries;
        unlink(tries);
        h.grant(tries, now, counted_);
        users_.push_front(tries);
        out.push_back({.what = effect::kind::granted, .who = &tries});
    }
    settle(now, out);
    return last_hold_;  // it may be released already
}

void local_grants::ask_refused(std::uint64_t ask, std::shared_ptr<const refusal> why, instant now, effects& out) {
    const auto answered = positions_.take(ask);
    if (!answered) return;
    if (answered->tries != nullptr) refuse(*answered->tries, why, out);
    if (answered->was_wanted) {
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
    h->may_use_up_to(std::max(ceiling, token));
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
    h->is_answered(now);
    settle(now, out);
}

void local_grants::on_proof(std::uint64_t hold, instant at, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr) return;
    h->proved_at = at;
    h->is_answered(now);
    // The link is new: nothing has been in vain there.
    if (at == instant{}) h->renew_from = {};
    // Renewals take longer than half of the lease. So no proof is ever young enough, and it is acquired anew.
    if (at != instant{} && h->was_granted && now >= at + settings_.lease / 2) h->retiring = true;
    settle(now, out);
}

void local_grants::on_ceiling(std::uint64_t hold, fencing_token ceiling, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr || h->mode == access::shared || ceiling <= h->ceiling) return;
    h->may_use_up_to(ceiling);
    h->is_answered(now);
    settle(now, out);
}

void local_grants::on_wanted(std::uint64_t hold, instant now, effects& out) {
    held* const h = find_hold(hold);
    if (h == nullptr || h->is_wanted()) return;
    h->wanted_at = now;
    positions_.others_wait(true);
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
    if (current_ == nullptr || closing_ || !waiting_.empty() || positions_.anybody_tries()) return std::nullopt;
    if (settings_.keep <= std::chrono::nanoseconds(0)) return std::nullopt;  // the last release gives it back
    const held& h = *current_;
    const bool is_exclusive = fast_mode() == access::exclusive;
    if (!h.was_granted || h.retiring || h.orphaned || h.is_wanted() || h.upgrader != nullptr) return std::nullopt;
    if (is_exclusive ? h.users > h.fast : h.writers > 0) return std::nullopt;
    if (!h.is_fresh(fast_mode(), now)) return std::nullopt;
    return fast_terms{h.number, h.fresh_until()};
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
    if (--h->users == 0 && !was_lost) h->is_unused(now);
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
}

}  // namespace holdfast::engine::local
