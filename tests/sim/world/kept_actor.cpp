#include "world/kept_actor.hpp"

#include <utility>

namespace holdfast::sim {
namespace {

using engine::access;

// Of the grants, those whose users look at their numbers at once.
constexpr unsigned number_percent = 70;

}  // namespace

kept_actor::kept_actor(actor::environment where, std::vector<keeper*> keepers, random_stream random, std::string name,
                       std::uint64_t owner)
    : env_(std::move(where)),
      keepers_(std::move(keepers)),
      random_(random),
      name_(std::move(name)),
      owner_(static_cast<engine::owner_id>(owner)) {}

std::string kept_actor::describe() const {
    return name_ + (asking_ ? " asks for the kept " : " holds the kept ") + (at_ != nullptr ? at_->lock() : "");
}

void kept_actor::note(const std::string& what) const {
    if (env_.trace) env_.trace(name_ + " " + what);
}

void kept_actor::after(nanoseconds wait, void (kept_actor::*what)()) {
    env_.time.after(wait, [this, what] { env_.process.when_awake([this, what] { (this->*what)(); }); });
}

void kept_actor::rest() {
    after(random_.within(env_.load.rest), &kept_actor::ask);
}

std::unique_ptr<kept_claim> kept_actor::make_claim() {
    auto fresh = std::make_unique<kept_claim>();
    fresh->whose = this;
    fresh->limit = env_.load.draw_patience(random_, env_.process.now());
    return fresh;
}

// Precedes every request.
void kept_actor::begin(kept_claim& what) {
    asking_ = true;
    cancelled_ = false;
    asked_at_ = env_.time.now();
    patience_ = what.limit;
    ++serial_;
    if (what.limit.deadline != never) expect_end(what.limit.deadline + env_.process.slept(), serial_);
    plan_cancel();
}

void kept_actor::ask() {
    if (env_.time.now() >= env_.load.stop) return;
    at_ = keepers_[random_.below(keepers_.size())];
    wish_ = make_claim();
    if (random_.percent(env_.load.owner_percent)) wish_->owner = owner_;
    const bool reads =
        at_->setup().options.kind == wire::lock_kind::read_write && random_.percent(env_.load.read_percent);
    if (reads) wish_->want = access::shared;
    note("asks for the kept " + at_->lock() + (reads ? " to read" : "") +
         (wish_->limit.wait == engine::waiting::in_queue ? "" : " at once"));
    begin(*wish_);
    at_->acquire(*wish_);
}

void kept_actor::plan_cancel() {
    if (!random_.percent(env_.load.cancel_percent)) return;
    env_.time.after(random_.within({nanoseconds(0), milliseconds(400)}), [this, serial = serial_] {
        env_.process.when_awake([this, serial] {
            if (!asking_ || serial != serial_) return;
            note("cancels");
            cancelled_ = true;
            at_->cancel(*wish_);
            if (asking_ && serial == serial_) env_.check.fail(name_ + " still waits for what it has cancelled");
        });
    });
}

void kept_actor::expect_end(instant deadline, std::uint64_t serial) {
    env_.time.at(deadline + punctual, [this, serial] {
        const client& process = env_.process;
        if (!asking_ || serial != serial_ || process.dead()) return;
        const instant now = env_.time.now();
        if (process.paused() || now < process.resumed_at() + after_a_pause)
            return expect_end(now + after_a_pause, serial);
        env_.check.fail(name_ + " waits beyond its deadline");
    });
}

void kept_actor::granted(kept_claim& what) {
    if (&what != wish_.get()) return env_.check.fail(name_ + " was granted what it did not ask for");
    asking_ = false;
    if (!mine_) {
        mine_ = std::move(wish_);
        is_lost_ = !at_->is_known(*mine_);  // in the same moment
        number_ = 0;
        if (is_lost_) {
            belief_ = std::make_shared<belief>();
            belief_->over = true;
            return after(random_.within(env_.load.hold), &kept_actor::next_step);
        }
        const auto& options = at_->setup().options;
        const bool reads = mine_->want == access::shared && options.kind == wire::lock_kind::read_write;
        note("holds " + at_->id_of(*mine_));
        belief_ = env_.check.believes_locally({.lock = at_->lock(),
                                               .id = at_->id_of(*mine_),
                                               .until = at_->valid_until(*mine_) + env_.process.slept(),
                                               .mode = reads ? access::shared : access::exclusive,
                                               .lease = options.lease,
                                               .asked = asked_at_});
        at_->track(*mine_, belief_);
        if (random_.percent(number_percent)) return after(nanoseconds(0), &kept_actor::take_number);
    } else {
        note("has one more level");
        past_.push_back(std::move(wish_));
        if (mine_->exclusive > 0 && belief_->mode == access::shared) {
            env_.check.upgraded_locally(*belief_, asked_at_);
        }
    }
    after(random_.within(env_.load.hold), &kept_actor::next_step);
}

// An actor whose client had no trouble may be refused only for reasons of the lock itself.
bool kept_actor::is_expected(errc why) const {
    const bool is_late = patience_.deadline <= env_.process.now();
    switch (why) {
        case errc::busy:
        case errc::read_held:
        case errc::write_held:
        case errc::reserved:
            return patience_.wait == engine::waiting::not_at_all;
        case errc::timed_out:
            return is_late;
        case errc::no_quorum:
            return is_late || !env_.process.calm_since(asked_at_);
        case errc::not_replicated:
            return env_.load.replicas_may_lag;
        case errc::cancelled:
            return cancelled_;
        case errc::would_deadlock:
        case errc::lost:
        case errc::not_held:
            return mine_ != nullptr;
        case errc::unreachable:
            return !env_.process.calm_since(asked_at_) ||
                   (is_late && env_.process.may_still_be_connecting(*at_->setup().keys, asked_at_));
        default:
            return !env_.process.calm_since(asked_at_);
    }
}

void kept_actor::refused(kept_claim& what, errc why) {
    if (&what != wish_.get()) return env_.check.fail(name_ + " was refused what it did not ask for");
    asking_ = false;
    note("is refused, code " + std::to_string(static_cast<int>(why)));
    env_.check.told(name_, why);
    if (!is_expected(why)) env_.check.wrongly_refused(at_->lock(), name_, why);
    past_.push_back(std::move(wish_));
    if (mine_) {
        after(nanoseconds(0), &kept_actor::next_step);
    } else {
        rest();
    }
}

void kept_actor::lost(kept_claim& what, errc) {
    if (&what == mine_.get()) is_lost_ = true;
}

void kept_actor::next_step() {
    if (!mine_ || asking_) return;
    const workload& load = env_.load;
    const bool is_rw = at_->setup().options.kind == wire::lock_kind::read_write;
    if (is_lost_ || env_.time.now() >= load.stop) return release();
    const unsigned depth = mine_->exclusive + mine_->shared;
    if (random_.percent(20)) return take_number();
    if (mine_->owner != engine::owner_id::nobody && depth < 4 && random_.percent(30)) return reenter();
    if (is_rw && mine_->exclusive == 0 && random_.percent(load.upgrade_percent)) return upgrade();
    if (is_rw && mine_->exclusive == 1 && depth < 4 && random_.percent(load.downgrade_percent)) {
        note("downgrades");
        belief_->mode = access::shared;
        at_->downgrade(*mine_);
        return after(random_.within(load.hold), &kept_actor::next_step);
    }
    release();
}

void kept_actor::take_number() {
    if (!mine_) return;
    if (!is_lost_) {
        at_->take_number(*mine_);
        if (mine_->token != number_) {
            number_ = mine_->token;
            note("has number " + std::to_string(number_));
            env_.check.numbered(*belief_, number_);
        }
    }
    after(random_.within(env_.load.hold), &kept_actor::next_step);
}

// A mode that is already held is re-entered at once, whoever waits.
void kept_actor::reenter() {
    wish_ = make_claim();
    wish_->owner = mine_->owner;
    const bool reads = at_->setup().options.kind == wire::lock_kind::read_write && mine_->exclusive == 0;
    wish_->want = reads ? access::shared : access::exclusive;
    note("re-enters");
    begin(*wish_);
    at_->acquire(*wish_);
    if (asking_) env_.check.fail(name_ + " did not re-enter at once");
}

void kept_actor::upgrade() {
    wish_ = make_claim();
    note("upgrades");
    begin(*wish_);
    at_->upgrade(*mine_, *wish_);
}

// It believes in less before the others may have more.
void kept_actor::release() {
    const bool has_both = mine_->exclusive > 0 && mine_->shared > 0;
    const access level =
        mine_->exclusive == 0 || (has_both && random_.percent(50)) ? access::shared : access::exclusive;
    const unsigned exclusive = mine_->exclusive - (level == access::exclusive ? 1 : 0);
    const unsigned shared = mine_->shared - (level == access::shared ? 1 : 0);
    note("releases a level");
    const bool is_over = exclusive + shared == 0;
    if (is_over) belief_->over = true;
    if (exclusive == 0 && shared > 0) belief_->mode = access::shared;
    at_->release(*mine_, level);
    if (!is_over) return after(random_.within(env_.load.hold), &kept_actor::next_step);
    past_.push_back(std::move(mine_));
    rest();
}

}  // namespace holdfast::sim
