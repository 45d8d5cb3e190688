#include "world/actor.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

constexpr milliseconds request_time{500};
// Virtual timers ring exactly; only one that was asleep is late.
constexpr milliseconds punctual{1};
constexpr milliseconds after_a_pause{20};

// The engine keeps the listener as long as it likes; the actor lives as long as the day.
std::shared_ptr<engine::hold_listener> borrowed(engine::hold_listener& listener) {
    return {std::shared_ptr<void>(), &listener};
}

}  // namespace

class actor::answer final : public engine::hold_request {
public:
    explicit answer(bool* under_way = nullptr) : under_way_(under_way) {}
    void answered(const std::optional<engine::refusal>&) override {
        done = true;
        if (under_way_ != nullptr) *under_way_ = false;
    }
    bool done = false;

private:
    bool* under_way_;
};

actor::actor(place where, chance luck, std::string name, std::uint64_t owner)
    : where_(std::move(where)), luck_(luck), name_(std::move(name)), owner_(static_cast<engine::owner_id>(owner)) {}

std::string actor::describe() const {
    return name_ + (asking_ ? " asks for " : " holds ") + terms_.keys->lock;
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
    out.keys = ways.locks[luck_.below(ways.locks.size())];
    out.lease = ways.leases[luck_.below(ways.leases.size())];
    if (luck_.percent(ways.owner_percent)) out.owner = owner_;
    if (luck_.percent(ways.fixed_percent)) out.renewing = engine::renewal::none;
    if (luck_.percent(ways.try_percent)) {
        out.limit.wait = engine::waiting::not_at_all;
        out.limit.deadline = where_.home.now() + request_time;
    } else if (luck_.percent(ways.deadline_percent)) {
        out.limit.deadline = where_.home.now() + luck_.within({milliseconds(1), milliseconds(2500)});
    }
    return out;
}

void actor::ask() {
    if (where_.time.now() >= where_.ways.stop) return;
    terms_ = draw_terms();
    asking_ = true;
    const std::uint64_t serial = ++serial_;
    note("asks for " + terms_.keys->lock + (terms_.limit.wait == engine::waiting::in_line ? " in line" : " at once") +
         " lease " + std::to_string(terms_.lease.count()) + (terms_.renewing == engine::renewal::none ? " fixed" : ""));
    const instant deadline = terms_.limit.deadline;
    where_.home.engine().acquire(*this, terms_, where_.home.now());
    if (deadline != never) expect_end(deadline + where_.home.slept(), serial);
    if (!luck_.percent(where_.ways.cancel_percent)) return;
    where_.time.after(luck_.within({nanoseconds(0), milliseconds(400)}), [this, serial] {
        where_.home.when_awake([this, serial] {
            if (!asking_ || serial != serial_) return;
            note("cancels");
            where_.home.engine().cancel(*this, errc::cancelled, where_.home.now());
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
    ++depth_;
    note("has " + held.terms().keys->lock + " by " + held.id().text() + " token " + std::to_string(held.token()));
    if (held_ == nullptr) {
        held_ = &held;
        granted_at_ = where_.time.now();
        held.listen(borrowed(*this));
        belief_ = where_.watch.believes({.lock = held.terms().keys->lock,
                                         .id = held.id().text(),
                                         .token = held.token(),
                                         .until = held.valid_until() + where_.home.slept()});
        if (held.valid_until() <= where_.home.now()) where_.watch.fail(name_ + " was given a hold that is over");
    }
    after(luck_.within(where_.ways.hold), &actor::carry_on);
}

void actor::refused(const engine::refusal& why) {
    asking_ = false;
    note("is refused, code " + std::to_string(static_cast<int>(why.code)));
    if (held_ != nullptr) {
        after(nanoseconds(0), &actor::carry_on);
    } else {
        rest();
    }
}

void actor::on_validity(instant until) {
    where_.watch.extended(*belief_, until + where_.home.slept());
}

void actor::on_lost(errc why) {
    note("has lost " + belief_->id + ", code " + std::to_string(static_cast<int>(why)));
    belief_->over = true;
    const bool renews = held_->terms().renewing == engine::renewal::automatic;
    if (renews && where_.home.calm_since(granted_at_)) where_.watch.lost_without_reason(*belief_);
}

void actor::carry_on() {
    if (held_ == nullptr) return;
    const bool owned = held_->terms().owner != engine::owner_id::nobody;
    if (luck_.percent(where_.ways.renew_percent) && !renewing_) return renew();
    if (owned && depth_ < 4 && luck_.percent(35)) return enter_again();
    release();
}

void actor::enter_again() {
    engine::acquire_terms again = held_->terms();
    again.limit.deadline = never;
    asking_ = true;
    ++serial_;
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

void actor::release() {
    engine::hold& held = *held_;
    const instant by = where_.home.now() + request_time;
    std::shared_ptr<answer> asked;
    if (luck_.percent(80)) asked = answers_.emplace_back(std::make_shared<answer>());
    note("releases level " + std::to_string(depth_));
    if (--depth_ == 0) {
        belief_->over = true;
        held_ = nullptr;
    }
    where_.home.engine().release(held, engine::access::exclusive, asked.get(), by, where_.home.now());
    if (asked) expect_answer(asked, where_.time.now() + request_time);
    if (depth_ > 0) {
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
