// What an actor does with a read-write lock that it holds.

#include "world/actor.hpp"

namespace holdfast::sim {

using engine::access;

void actor::next_step_rw() {
    const workload& load = env_.load;
    const bool owned = held_->terms().owner != engine::owner_id::nobody;
    const unsigned exclusive = held_->levels(access::exclusive);
    // Upgrades and downgrades could alternate for ever.
    const bool releases = env_.time.now() >= load.stop || rw_random_.percent(load.release_percent);
    if (!releases && rw_random_.percent(load.renew_percent) && !renewing_) return renew();
    if (!releases && owned && depth() < 5 && rw_random_.percent(35)) return reenter_rw();
    if (!releases && depth() < 5 && rw_random_.percent(load.upgrade_percent)) return upgrade();
    if (!releases && exclusive > 0 && rw_random_.percent(load.downgrade_percent)) return downgrade();
    const bool reads = held_->levels(access::shared) > 0;
    release(exclusive == 0 || (reads && rw_random_.percent(50)) ? access::shared : access::exclusive);
}

// A mode that is already held is re-entered at once, whoever waits.
void actor::reenter_rw() {
    engine::acquire_terms again = terms_of_hold();
    again.limit = env_.load.draw_patience(rw_random_, env_.process.now());
    again.want = rw_random_.percent(60) ? access::shared : access::exclusive;
    const bool upgrades = again.want == access::exclusive && held_->levels(access::exclusive) == 0;
    const instant deadline = again.limit.deadline;
    begin(again.limit);
    const std::uint64_t serial = serial_;
    if (upgrades) env_.check.expect_change();
    note(again.want == access::shared ? "re-enters to read" : "re-enters to write");
    env_.process.engine().acquire(*this, std::move(again), env_.process.now());
    if (asking_ && !upgrades) env_.check.fail(name_ + " did not re-enter at once");
    if (deadline != never) expect_end(deadline + env_.process.slept(), serial);
    if (!asking_) return;
    plan_cancel(rw_random_);
    plan_release_during_upgrade();
}

void actor::upgrade() {
    const engine::patience limit = env_.load.draw_patience(rw_random_, env_.process.now());
    begin(limit);
    const std::uint64_t serial = serial_;
    env_.check.expect_change();
    note(limit.wait == engine::waiting::in_queue ? "upgrades" : "upgrades at once");
    env_.process.engine().upgrade(*held_, *this, limit, env_.process.now());
    if (limit.deadline != never) expect_end(limit.deadline + env_.process.slept(), serial);
    if (!asking_) return;
    plan_cancel(rw_random_);
    plan_release_during_upgrade();
}

void actor::downgrade() {
    const auto asked = answers_.emplace_back(std::make_shared<answer>());
    note("downgrades");
    note_remaining_levels(held_->levels(access::exclusive) - 1, held_->levels(access::shared) + 1);
    env_.process.engine().downgrade(*held_, *asked, env_.process.now() + request_time, env_.process.now());
    expect_answer(asked, env_.time.now() + request_time);
    after(rw_random_.within(env_.load.hold), &actor::next_step);
}

// Another thread of the program releases the hold while its upgrade waits.
void actor::plan_release_during_upgrade() {
    if (!rw_random_.percent(env_.load.cancel_percent / 2)) return;
    env_.time.after(rw_random_.within({nanoseconds(0), milliseconds(400)}), [this, serial = serial_] {
        env_.process.when_awake([this, serial] {
            if (asking_ && serial == serial_) release_during_upgrade();
        });
    });
}

void actor::release_during_upgrade() {
    note("releases all during its upgrade");
    releasing_all_ = true;
    engine::hold& held = *held_;
    for (unsigned left = depth(); left > 0; --left) {
        const access level = held.levels(access::shared) > 0 ? access::shared : access::exclusive;
        const auto asked = answers_.emplace_back(std::make_shared<answer>());
        const unsigned shared = held.levels(access::shared) - (level == access::shared ? 1 : 0);
        note_remaining_levels(left - 1 - shared, shared);
        env_.process.engine().release(held, level, asked.get(), env_.process.now() + request_time, env_.process.now());
        expect_answer(asked, env_.time.now() + request_time);
    }
    releasing_all_ = false;
    if (asking_) env_.check.fail(name_ + " still waits to upgrade a hold that it has released");
    rest();
}

// Precedes the call of the engine: from now on the holder does not rely on more than this.
void actor::note_remaining_levels(unsigned exclusive, unsigned shared) {
    const bool less = held_->levels(access::exclusive) > 0 && held_->levels(access::shared) > 0;
    if (exclusive + shared == 0) {
        belief_->over = true;
        held_ = nullptr;
        return;
    }
    if (exclusive == 0 && belief_->mode == access::exclusive) {
        belief_->mode = access::shared;
        env_.check.expect_change();
    } else if (less && shared == 0) {
        env_.check.expect_change();
    }
}

}  // namespace holdfast::sim
