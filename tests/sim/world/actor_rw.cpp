// What people do with a read-write lock that they hold.

#include "world/actor.hpp"

namespace holdfast::sim {

using engine::access;

void actor::carry_on_rw() {
    const habits& ways = where_.ways;
    const bool owned = held_->terms().owner != engine::owner_id::nobody;
    const unsigned exclusive = held_->levels(access::exclusive);
    // Up and down could go on for ever.
    const bool lets_go = where_.time.now() >= ways.stop || rw_luck_.percent(ways.lets_go_percent);
    if (!lets_go && rw_luck_.percent(ways.renew_percent) && !renewing_) return renew();
    if (!lets_go && owned && depth() < 5 && rw_luck_.percent(35)) return enter_again_rw();
    if (!lets_go && depth() < 5 && rw_luck_.percent(ways.upgrade_percent)) return upgrade();
    if (!lets_go && exclusive > 0 && rw_luck_.percent(ways.downgrade_percent)) return downgrade();
    const bool reads = held_->levels(access::shared) > 0;
    release(exclusive == 0 || (reads && rw_luck_.percent(50)) ? access::shared : access::exclusive);
}

// A mode that is held already is entered at once, whoever waits.
void actor::enter_again_rw() {
    engine::acquire_terms again = as_before();
    again.limit = draw_patience(rw_luck_);
    again.want = rw_luck_.percent(60) ? access::shared : access::exclusive;
    const bool upgrades = again.want == access::exclusive && held_->levels(access::exclusive) == 0;
    const instant deadline = again.limit.deadline;
    begin(again.limit);
    const std::uint64_t serial = serial_;
    if (upgrades) where_.watch.expect_change();
    note(again.want == access::shared ? "enters again to read" : "enters again to write");
    where_.home.engine().acquire(*this, std::move(again), where_.home.now());
    if (asking_ && !upgrades) where_.watch.fail(name_ + " was not let in again at once");
    if (deadline != never) expect_end(deadline + where_.home.slept(), serial);
    if (!asking_) return;
    plan_cancel(rw_luck_);
    plan_walking_out();
}

void actor::upgrade() {
    const engine::patience limit = draw_patience(rw_luck_);
    begin(limit);
    const std::uint64_t serial = serial_;
    where_.watch.expect_change();
    note(limit.wait == engine::waiting::in_queue ? "upgrades" : "upgrades at once");
    where_.home.engine().upgrade(*held_, *this, limit, where_.home.now());
    if (limit.deadline != never) expect_end(limit.deadline + where_.home.slept(), serial);
    if (!asking_) return;
    plan_cancel(rw_luck_);
    plan_walking_out();
}

void actor::downgrade() {
    const auto asked = answers_.emplace_back(std::make_shared<answer>());
    note("downgrades");
    about_to_hold(held_->levels(access::exclusive) - 1, held_->levels(access::shared) + 1);
    where_.home.engine().downgrade(*held_, *asked, where_.home.now() + request_time, where_.home.now());
    expect_answer(asked, where_.time.now() + request_time);
    after(rw_luck_.within(where_.ways.hold), &actor::carry_on);
}

// Another thread of the program lets the hold go while its upgrade is waited for.
void actor::plan_walking_out() {
    if (!rw_luck_.percent(where_.ways.cancel_percent / 2)) return;
    where_.time.after(rw_luck_.within({nanoseconds(0), milliseconds(400)}), [this, serial = serial_] {
        where_.home.when_awake([this, serial] {
            if (asking_ && serial == serial_) walk_out();
        });
    });
}

void actor::walk_out() {
    note("walks out");
    walking_out_ = true;
    engine::hold& held = *held_;
    for (unsigned left = depth(); left > 0; --left) {
        const access level = held.levels(access::shared) > 0 ? access::shared : access::exclusive;
        const auto asked = answers_.emplace_back(std::make_shared<answer>());
        const unsigned shared = held.levels(access::shared) - (level == access::shared ? 1 : 0);
        about_to_hold(left - 1 - shared, shared);
        where_.home.engine().release(held, level, asked.get(), where_.home.now() + request_time, where_.home.now());
        expect_answer(asked, where_.time.now() + request_time);
    }
    walking_out_ = false;
    if (asking_) where_.watch.fail(name_ + " still waits to upgrade what it let go");
    rest();
}

// Called before the engine hears of it: from now on the holder does not count on more than this.
void actor::about_to_hold(unsigned exclusive, unsigned shared) {
    const bool less = held_->levels(access::exclusive) > 0 && held_->levels(access::shared) > 0;
    if (exclusive + shared == 0) {
        belief_->over = true;
        held_ = nullptr;
        return;
    }
    if (exclusive == 0 && belief_->mode == access::exclusive) {
        belief_->mode = access::shared;
        where_.watch.expect_change();
    } else if (less && shared == 0) {
        where_.watch.expect_change();
    }
}

}  // namespace holdfast::sim
