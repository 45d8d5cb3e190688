#include "world/actor.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

// So long after the end of the busy phase every actor releases what it holds.
constexpr milliseconds lingering{20'000};

// A non-owning pointer: the engine may keep the listener as long as it likes, and the actor lives as long as the
// scenario.
std::shared_ptr<engine::hold_listener> borrowed(engine::hold_listener& listener) {
    return {std::shared_ptr<void>(), &listener};
}

}  // namespace

actor::actor(environment where, random_stream random, std::string name, std::uint64_t owner)
    : env_(std::move(where)),
      random_(random),
      permits_random_(random_stream(random).next() ^ 0x9e371f5U),
      note_random_(random_stream(random).next() ^ 0x6e07eU),
      rw_random_(random_stream(random).next() ^ 0x5ead0717eU),
      name_(std::move(name)),
      owner_(static_cast<engine::owner_id>(owner)) {}

std::string actor::describe() const {
    return name_ + (asking_ ? " asks for " : " holds ") + terms_.keys->lock();
}

void actor::note(const std::string& what) const {
    if (env_.trace) env_.trace(name_ + " " + what);
}

void actor::after(nanoseconds wait, void (actor::*what)()) {
    env_.time.after(wait, [this, what] { env_.process.when_awake([this, what] { (this->*what)(); }); });
}

void actor::rest() {
    after(random_.within(env_.load.rest), &actor::ask);
}

engine::acquire_terms actor::draw_terms() {
    const workload& load = env_.load;
    engine::acquire_terms out;
    const lock_plan& lock = load.locks[random_.below(load.locks.size())];
    out.keys = lock.keys;
    out.options.kind = lock.kind;
    out.options.prefer = lock.prefer;
    if (lock.kind == wire::lock_kind::read_write && rw_random_.percent(load.read_percent))
        out.want = engine::access::shared;
    out.options.lease = load.leases[random_.below(load.leases.size())];
    if (!load.delay_ignored) out.options.delay_ms = static_cast<std::uint32_t>(load.delay_of(lock.kind).count());
    if (random_.percent(load.owner_percent)) out.owner = owner_;
    if (lock.kind == wire::lock_kind::semaphore) {
        out.owner = engine::owner_id::nobody;
        out.options.limit = lock.limit;
        if (load.limits_differ && permits_random_.percent(3)) ++out.options.limit;
        const bool wants_many = permits_random_.percent(30);
        out.options.permits = 1 + static_cast<std::uint32_t>(permits_random_.below(wants_many ? lock.limit : 1));
    }
    if (random_.percent(load.fixed_percent)) out.options.renewing = engine::renewal::none;
    out.limit = load.draw_patience(random_, env_.process.now());
    const bool may_have_note = lock.kind != wire::lock_kind::semaphore && !lock.keys->is_raw();
    if (may_have_note && note_random_.percent(load.note_percent))
        out.options.note = std::make_shared<const std::string>(name_ + " #" + std::to_string(serial_));
    out.options.replicas = load.replicas;
    out.options.replica_timeout_ms = load.replica_timeout_ms;
    out.options.yield_after_ms = load.yield_after_ms;
    return out;
}

void actor::ask() {
    if (env_.time.now() >= env_.load.stop) return;
    terms_ = draw_terms();
    begin(terms_.limit);
    const std::uint64_t serial = serial_;
    note("asks for " + terms_.keys->lock() + (terms_.want == engine::access::shared ? " to read" : "") +
         (terms_.limit.wait == engine::waiting::in_queue ? " in the queue" : " at once") + " lease " +
         std::to_string(terms_.options.lease.count()) +
         (terms_.options.renewing == engine::renewal::none ? " fixed" : ""));
    const instant deadline = terms_.limit.deadline;
    if (env_.load.deadlines_ignored) terms_.limit.deadline = never;
    env_.process.engine().acquire(*this, terms_, env_.process.now());
    if (deadline != never) expect_end(deadline + env_.process.slept(), serial);
    plan_cancel(random_);
}

// Precedes every request.
void actor::begin(engine::patience limit) {
    asking_ = true;
    cancelled_ = false;
    asked_at_ = env_.time.now();
    patience_ = limit;
    ++serial_;
}

void actor::plan_cancel(random_stream& random) {
    if (!random.percent(env_.load.cancel_percent)) return;
    env_.time.after(random.within({nanoseconds(0), milliseconds(400)}), [this, serial = serial_] {
        env_.process.when_awake([this, serial] {
            if (!asking_ || serial != serial_) return;
            note("cancels");
            cancelled_ = true;
            if (!env_.load.cancellations_ignored)
                env_.process.engine().cancel(*this, errc::cancelled, env_.process.now());
            if (asking_ && serial == serial_)
                env_.check.fail(name_ + " still waits for an acquisition that it has cancelled");
        });
    });
}

void actor::expect_end(instant deadline, std::uint64_t serial) {
    env_.time.at(deadline + punctual, [this, serial] {
        const client& process = env_.process;
        if (!asking_ || serial != serial_ || process.dead()) return;
        const instant now = env_.time.now();
        if (process.paused() || now < process.resumed_at() + after_a_pause)
            return expect_end(now + after_a_pause, serial);
        env_.check.fail(name_ + " waits beyond its deadline");
    });
}

void actor::acquired(engine::hold& held) {
    asking_ = false;
    note("acquired " + held.terms().keys->lock() + " by " + held.id().text(env_.process.engine().id()) + " token " +
         std::to_string(held.token()));
    const bool is_counted = held.options().kind == wire::lock_kind::semaphore;
    if (held_ == nullptr) {
        held_ = &held;
        granted_at_ = env_.time.now();
        held.listen(borrowed(*this));
        belief_ = env_.check.believes({.lock = held.terms().keys->lock(),
                                       .id = held.id().text(env_.process.engine().id()),
                                       .token = held.token(),
                                       .until = held.valid_until() + env_.process.slept(),
                                       .mode = is_counted ? engine::access::shared : held.terms().want,
                                       .lease = held.options().lease,
                                       .delay = env_.load.delay_of(held.options().kind),
                                       .asked = asked_at_,
                                       .permits = is_counted ? held.options().permits : 0,
                                       .limit = held.options().limit});
        if (held.valid_until() <= env_.process.now())
            env_.check.fail(name_ + " acquired a hold whose validity has ended");
    } else if (held.levels(engine::access::exclusive) > 0 && belief_->mode == engine::access::shared) {
        env_.check.upgraded(*belief_, held.token(), asked_at_);
    }
    after(random_.within(env_.load.hold), &actor::next_step);
}

// An actor whose client had no trouble may be refused only for reasons of the lock itself.
bool actor::is_expected(errc why) const {
    switch (why) {
        case errc::busy:
        case errc::read_held:
        case errc::write_held:
        case errc::reserved:
            return patience_.wait == engine::waiting::not_at_all;
        case errc::timed_out:
            return patience_.deadline <= env_.process.now();
        case errc::no_quorum:  // its deadline passed before enough servers answered
            return patience_.deadline <= env_.process.now() || !env_.process.calm_since(asked_at_);
        case errc::not_replicated:
            return env_.load.replicas_may_lag;
        case errc::limit_differs:
        case errc::over_limit:
            return env_.load.limits_differ;
        case errc::cancelled:
            return cancelled_;
        case errc::would_deadlock:
        case errc::lost:
            return held_ != nullptr;
        case errc::unreachable:
            return !env_.process.calm_since(asked_at_) ||
                   (patience_.deadline <= env_.process.now() &&
                    env_.process.may_still_be_connecting(*terms_.keys, asked_at_));
        default:
            return !env_.process.calm_since(asked_at_);
    }
}

// Whatever happens to links: a waiter learns at its deadline, and not earlier, that no server can be reached.
bool actor::is_too_early(errc why) const {
    if (patience_.wait != engine::waiting::in_queue || (why != errc::unreachable && why != errc::no_quorum))
        return false;
    if (patience_.deadline != never) return env_.process.now() < patience_.deadline;
    return env_.time.now() < asked_at_ + env_.process.first_connect();
}

void actor::refused(const engine::refusal& why) {
    asking_ = false;
    env_.check.told(name_, why.code);
    env_.check.notes().told(why.holder, why.note);
    if (is_too_early(why.code)) env_.check.fail(name_ + " was told before its time that no server can be reached");
    if (!is_expected(why.code) && !releasing_all_) env_.check.wrongly_refused(terms_.keys->lock(), name_, why.code);
    if (releasing_all_) return;
    note("is refused, code " + std::to_string(static_cast<int>(why.code)));
    if (held_ != nullptr) {
        after(nanoseconds(0), &actor::next_step);
    } else {
        rest();
    }
}

void actor::on_validity(instant until) {
    env_.check.extended(belief_, until + env_.process.slept());
}

void actor::on_token(engine::fencing_token token) {
    belief_->token = token;
}

void actor::on_lost(errc why) {
    note("lost " + belief_->id + ", code " + std::to_string(static_cast<int>(why)));
    // After errc::lost the hold may be believed in until its validity ends: that time is meant for stopping work.
    if (why != errc::lost) belief_->over = true;
    env_.check.lost.insert(belief_->id);
    const bool renews = held_->options().renewing == engine::renewal::automatic;
    if (renews && env_.process.calm_since(granted_at_)) env_.check.lost_without_reason(*belief_);
}

void actor::next_step() {
    if (held_ == nullptr) return;
    if (held_->options().kind == wire::lock_kind::read_write) return next_step_rw();
    // Re-entering again and again could last longer than the simulator waits.
    if (env_.time.now() >= env_.load.stop + lingering) return release(engine::access::exclusive);
    const bool owned = held_->terms().owner != engine::owner_id::nobody;
    if (random_.percent(env_.load.renew_percent) && !renewing_) return renew();
    if (owned && depth() < 4 && random_.percent(35)) return reenter();
    release(engine::access::exclusive);
}

unsigned actor::depth() const {
    return held_->levels(engine::access::exclusive) + held_->levels(engine::access::shared);
}

engine::acquire_terms actor::terms_of_hold() const {
    const engine::hold_terms& has = held_->terms();
    return {.keys = has.keys, .options = has.options, .want = has.want, .owner = has.owner};
}

void actor::reenter() {
    engine::acquire_terms again = terms_of_hold();
    begin(again.limit);
    note("re-enters");
    env_.process.engine().acquire(*this, std::move(again), env_.process.now());
}

void actor::renew() {
    renewing_ = true;
    const auto asked = answers_.emplace_back(std::make_shared<answer>(&renewing_));
    note("renews");
    asked->check = [this, id = belief_->id, since = env_.time.now()](std::optional<errc> why_not) {
        if (!why_not) env_.check.told_renewed(id, since);
    };
    env_.process.engine().renew(*held_, *asked, env_.process.now());
    expect_answer(asked, env_.time.now() + request_time);
    after(random_.within(env_.load.hold), &actor::next_step);
}

void actor::release(engine::access level) {
    engine::hold& held = *held_;
    const instant by = env_.process.now() + request_time;
    std::shared_ptr<answer> asked;
    if (random_.percent(80)) asked = answers_.emplace_back(std::make_shared<answer>());
    const unsigned left = depth() - 1;
    note("releases level " + std::to_string(left + 1) + (level == engine::access::shared ? ", shared" : ""));
    const unsigned shared = held.levels(engine::access::shared) - (level == engine::access::shared ? 1 : 0);
    if (asked && left == 0) {
        asked->check = [this, id = belief_->id, since = env_.time.now()](std::optional<errc> why_not) {
            env_.check.told_released(id, since, why_not);
        };
    }
    note_remaining_levels(left - shared, shared);
    engine::hold_completion* const told = env_.load.answers_ignored ? nullptr : asked.get();
    env_.process.engine().release(held, level, told, by, env_.process.now());
    if (asked) expect_answer(asked, env_.time.now() + request_time);
    if (left > 0) {
        after(random_.within(env_.load.hold), &actor::next_step);
    } else {
        rest();
    }
}

void actor::expect_answer(const std::shared_ptr<answer>& asked, instant deadline) {
    env_.time.at(deadline + punctual, [this, asked] {
        const client& process = env_.process;
        if (asked->done || process.dead()) return;
        const instant now = env_.time.now();
        if (process.paused() || now < process.resumed_at() + after_a_pause)
            return expect_answer(asked, now + after_a_pause);
        env_.check.fail(name_ + " was not answered in time");
    });
}

}  // namespace holdfast::sim
