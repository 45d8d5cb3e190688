#include "world/actor.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

// Virtual timers ring exactly; only one that was asleep is late.
constexpr milliseconds punctual{1};
constexpr milliseconds after_a_pause{20};
// So much later than the busy hours everybody goes home.
constexpr milliseconds lingering{20'000};

// The engine keeps the listener as long as it likes; the actor lives as long as the day.
std::shared_ptr<engine::hold_listener> borrowed(engine::hold_listener& listener) {
    return {std::shared_ptr<void>(), &listener};
}

}  // namespace

actor::actor(place where, chance luck, std::string name, std::uint64_t owner)
    : where_(std::move(where)),
      luck_(luck),
      rw_luck_(chance(luck).next() ^ 0x5ead0717eU),
      name_(std::move(name)),
      owner_(static_cast<engine::owner_id>(owner)) {}

std::string actor::describe() const {
    return name_ + (asking_ ? " asks for " : " holds ") + terms_.keys->lock();
}

void actor::note(const std::string& what) const {
    if (where_.trace) where_.trace(name_ + " " + what);
}

void actor::after(nanoseconds wait, void (actor::*what)()) {
    where_.time.after(wait, [this, what] { where_.home.when_awake([this, what] { (this->*what)(); }); });
}

void actor::rest() {
    after(luck_.within(where_.ways.rest), &actor::ask);
}

engine::acquire_terms actor::draw_terms() {
    const habits& ways = where_.ways;
    engine::acquire_terms out;
    const lock_plan& lock = ways.locks[luck_.below(ways.locks.size())];
    out.keys = lock.keys;
    out.kind = lock.kind;
    out.prefer = lock.prefer;
    if (lock.kind == wire::lock_kind::read_write && rw_luck_.percent(ways.read_percent))
        out.want = engine::access::shared;
    out.lease = ways.leases[luck_.below(ways.leases.size())];
    if (luck_.percent(ways.owner_percent)) out.owner = owner_;
    if (luck_.percent(ways.fixed_percent)) out.renewing = engine::renewal::none;
    out.limit = draw_patience(luck_);
    out.acknowledged_by = ways.acknowledged_by;
    out.yield_after_ms = ways.yield_after_ms;
    return out;
}

engine::patience actor::draw_patience(chance& luck) const {
    engine::patience out;
    if (luck.percent(where_.ways.try_percent)) {
        out.wait = engine::waiting::not_at_all;
        out.deadline = where_.home.now() + request_time;
    } else if (luck.percent(where_.ways.deadline_percent)) {
        out.deadline = where_.home.now() + luck.within({milliseconds(1), milliseconds(2500)});
    }
    return out;
}

void actor::ask() {
    if (where_.time.now() >= where_.ways.stop) return;
    terms_ = draw_terms();
    begin(terms_.limit);
    const std::uint64_t serial = serial_;
    note("asks for " + terms_.keys->lock() + (terms_.want == engine::access::shared ? " to read" : "") +
         (terms_.limit.wait == engine::waiting::in_queue ? " in line" : " at once") + " lease " +
         std::to_string(terms_.lease.count()) + (terms_.renewing == engine::renewal::none ? " fixed" : ""));
    const instant deadline = terms_.limit.deadline;
    if (where_.ways.deadlines_forgotten) terms_.limit.deadline = never;
    where_.home.engine().acquire(*this, terms_, where_.home.now());
    if (deadline != never) expect_end(deadline + where_.home.slept(), serial);
    plan_cancel(luck_);
}

// Before every request.
void actor::begin(engine::patience limit) {
    asking_ = true;
    cancelled_ = false;
    asked_at_ = where_.time.now();
    patience_ = limit;
    ++serial_;
}

void actor::plan_cancel(chance& luck) {
    if (!luck.percent(where_.ways.cancel_percent)) return;
    where_.time.after(luck.within({nanoseconds(0), milliseconds(400)}), [this, serial = serial_] {
        where_.home.when_awake([this, serial] {
            if (!asking_ || serial != serial_) return;
            note("cancels");
            cancelled_ = true;
            if (!where_.ways.cancellations_forgotten)
                where_.home.engine().cancel(*this, errc::cancelled, where_.home.now());
            if (asking_ && serial == serial_) where_.watch.fail(name_ + " still waits for what it has cancelled");
        });
    });
}

void actor::expect_end(instant deadline, std::uint64_t serial) {
    where_.time.at(deadline + punctual, [this, deadline, serial] {
        const client& home = where_.home;
        if (!asking_ || serial != serial_ || home.dead()) return;
        const instant now = where_.time.now();
        if (home.paused() || now < home.resumed_at() + after_a_pause) return expect_end(now + after_a_pause, serial);
        where_.watch.fail(name_ + " waits beyond its deadline");
    });
}

void actor::acquired(engine::hold& held) {
    asking_ = false;
    note("has " + held.terms().keys->lock() + " by " + held.id().text(where_.home.engine().id()) + " token " +
         std::to_string(held.token()));
    if (held_ == nullptr) {
        held_ = &held;
        granted_at_ = where_.time.now();
        held.listen(borrowed(*this));
        belief_ = where_.watch.believes({.lock = held.terms().keys->lock(),
                                         .id = held.id().text(where_.home.engine().id()),
                                         .token = held.token(),
                                         .until = held.valid_until() + where_.home.slept(),
                                         .mode = held.terms().want,
                                         .lease = held.terms().lease,
                                         .asked = asked_at_});
        if (held.valid_until() <= where_.home.now()) where_.watch.fail(name_ + " was given a hold that is over");
    } else if (held.levels(engine::access::exclusive) > 0 && belief_->mode == engine::access::shared) {
        where_.watch.upgraded(*belief_, held.token(), asked_at_);
    }
    after(luck_.within(where_.ways.hold), &actor::carry_on);
}

// Whoever has had no trouble is told nothing but what the lock has to say.
bool actor::is_to_be_expected(errc why) const {
    switch (why) {
        case errc::busy:
        case errc::read_held:
        case errc::write_held:
        case errc::reserved:
            return patience_.wait == engine::waiting::not_at_all;
        case errc::timed_out:
            return patience_.deadline <= where_.home.now();
        case errc::no_quorum:  // whose time was up before so many servers could answer
            return patience_.deadline <= where_.home.now() || !where_.home.calm_since(asked_at_);
        case errc::not_replicated:
            return where_.ways.replicas_may_lag;
        case errc::cancelled:
            return cancelled_;
        case errc::would_deadlock:
        case errc::lost:
            return held_ != nullptr;
        case errc::unreachable:
            return !where_.home.calm_since(asked_at_) ||
                   (patience_.deadline <= where_.home.now() && where_.home.may_still_seek(*terms_.keys, asked_at_));
        default:
            return !where_.home.calm_since(asked_at_);
    }
}

// Whatever happens to links: whoever waits hears that no server can be reached when its time is up, and not before.
bool actor::is_told_too_early(errc why) const {
    if (patience_.wait != engine::waiting::in_queue || (why != errc::unreachable && why != errc::no_quorum))
        return false;
    if (patience_.deadline != never) return where_.home.now() < patience_.deadline;
    return where_.time.now() < asked_at_ + where_.home.first_connect();
}

void actor::refused(const engine::refusal& why) {
    asking_ = false;
    where_.watch.told(name_, why.code);
    if (is_told_too_early(why.code))
        where_.watch.fail(name_ + " was told before its time that no server can be reached");
    if (!is_to_be_expected(why.code) && !walking_out_)
        where_.watch.wrongly_refused(terms_.keys->lock(), name_, why.code);
    if (walking_out_) return;
    note("is refused, code " + std::to_string(static_cast<int>(why.code)));
    if (held_ != nullptr) {
        after(nanoseconds(0), &actor::carry_on);
    } else {
        rest();
    }
}

void actor::on_validity(instant until) {
    where_.watch.extended(belief_, until + where_.home.slept());
}

void actor::on_token(engine::fencing_token token) {
    belief_->token = token;
}

void actor::on_lost(errc why) {
    note("has lost " + belief_->id + ", code " + std::to_string(static_cast<int>(why)));
    // By the clock it may be believed in to its end: that is the time to stop in.
    if (why != errc::lost) belief_->over = true;
    where_.watch.lost.insert(belief_->id);
    const bool renews = held_->terms().renewing == engine::renewal::automatic;
    if (renews && where_.home.calm_since(granted_at_)) where_.watch.lost_without_reason(*belief_);
}

void actor::carry_on() {
    if (held_ == nullptr) return;
    if (held_->terms().kind == wire::lock_kind::read_write) return carry_on_rw();
    // In and out again could go on for longer than anybody is patient.
    if (where_.time.now() >= where_.ways.stop + lingering) return release(engine::access::exclusive);
    const bool owned = held_->terms().owner != engine::owner_id::nobody;
    if (luck_.percent(where_.ways.renew_percent) && !renewing_) return renew();
    if (owned && depth() < 4 && luck_.percent(35)) return enter_again();
    release(engine::access::exclusive);
}

unsigned actor::depth() const {
    return held_->levels(engine::access::exclusive) + held_->levels(engine::access::shared);
}

engine::acquire_terms actor::as_before() const {
    const engine::hold_terms& has = held_->terms();
    return {.keys = has.keys,
            .kind = has.kind,
            .prefer = has.prefer,
            .want = has.want,
            .upgrading = has.upgrading,
            .owner = has.owner,
            .lease = has.lease,
            .renewing = has.renewing,
            .max_repeats = has.max_repeats,
            .acknowledged_by = has.acknowledged_by,
            .yield_after_ms = has.yield_after_ms};
}

void actor::enter_again() {
    engine::acquire_terms again = as_before();
    begin(again.limit);
    note("enters again");
    where_.home.engine().acquire(*this, std::move(again), where_.home.now());
}

void actor::renew() {
    renewing_ = true;
    const auto asked = answers_.emplace_back(std::make_shared<answer>(&renewing_));
    note("renews");
    where_.home.engine().renew(*held_, *asked, where_.home.now());
    expect_answer(asked, where_.time.now() + request_time);
    after(luck_.within(where_.ways.hold), &actor::carry_on);
}

void actor::release(engine::access level) {
    engine::hold& held = *held_;
    const instant by = where_.home.now() + request_time;
    std::shared_ptr<answer> asked;
    if (luck_.percent(80)) asked = answers_.emplace_back(std::make_shared<answer>());
    const unsigned left = depth() - 1;
    note("releases level " + std::to_string(left + 1) + (level == engine::access::shared ? ", one that reads" : ""));
    const unsigned shared = held.levels(engine::access::shared) - (level == engine::access::shared ? 1 : 0);
    about_to_hold(left - shared, shared);
    engine::hold_completion* const told = where_.ways.answers_forgotten ? nullptr : asked.get();
    where_.home.engine().release(held, level, told, by, where_.home.now());
    if (asked) expect_answer(asked, where_.time.now() + request_time);
    if (left > 0) {
        after(luck_.within(where_.ways.hold), &actor::carry_on);
    } else {
        rest();
    }
}

void actor::expect_answer(const std::shared_ptr<answer>& asked, instant deadline) {
    where_.time.at(deadline + punctual, [this, asked] {
        const client& home = where_.home;
        if (asked->done || home.dead()) return;
        const instant now = where_.time.now();
        if (home.paused() || now < home.resumed_at() + after_a_pause) return expect_answer(asked, now + after_a_pause);
        where_.watch.fail(name_ + " was not answered in time");
    });
}

}  // namespace holdfast::sim
