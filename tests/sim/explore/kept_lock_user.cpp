#include "explore/kept_lock_user.hpp"

#include <utility>

namespace holdfast::sim::explore {

using engine::access;

kept_lock_user::kept_lock_user(client& process, keeper& at, checker& check, lock_user_setup setup)
    : process_(process), keeper_(at), check_(check), setup_(std::move(setup)) {}

void kept_lock_user::note(const std::string& what) const {
    if (setup_.trace) setup_.trace("  " + setup_.name + " " + what);
}

bool kept_lock_user::is_to_skip() const {
    const act next = steps()[at_];
    if (acquires(next)) return is_ending_;
    if (!mine_) return true;
    if (next == act::upgrade) return is_ending_ || mine_->exclusive > 0 || is_lost_;
    if (next == act::downgrade) return mine_->exclusive == 0 || is_lost_;
    return next == act::cancel || next == act::check || next == act::write;
}

void kept_lock_user::skip() {
    while (at_ < steps().size() && !asking_ && is_to_skip()) ++at_;
}

void kept_lock_user::step() {
    const act next = steps()[at_++];
    process_.when_awake([this, next] {
        switch (next) {
            case act::acquire:
            case act::try_once:
                return ask(access::exclusive);
            case act::read:
                return ask(access::shared);
            case act::upgrade:
                return upgrade();
            case act::downgrade:
                return downgrade();
            case act::number:
                return take_number();
            case act::release:
                return release();
            default:
                return;
        }
    });
    skip();
}

void kept_lock_user::ask(access want) {
    if (is_ending_) return;
    wish_ = std::make_unique<kept_claim>();
    wish_->whose = this;
    wish_->want = want;
    asking_ = true;
    asked_at_ = process_.now();
    keeper_.acquire(*wish_);
}

void kept_lock_user::upgrade() {
    if (!mine_ || is_lost_) return;
    wish_ = std::make_unique<kept_claim>();
    wish_->whose = this;
    asking_ = true;
    asked_at_ = process_.now();
    keeper_.upgrade(*mine_, *wish_);
}

void kept_lock_user::downgrade() {
    if (is_lost_) return;
    belief_->mode = access::shared;
    keeper_.downgrade(*mine_);
}

void kept_lock_user::take_number() {
    if (is_lost_) return;
    const engine::fencing_token before = mine_->token;
    keeper_.take_number(*mine_);
    if (mine_->token == before) return;
    note("has number " + std::to_string(mine_->token));
    check_.numbered(*belief_, mine_->token);
}

// It believes in less before the others may have more.
void kept_lock_user::release() {
    const access level = mine_->exclusive > 0 ? access::exclusive : access::shared;
    const bool is_over = mine_->exclusive + mine_->shared == 1;
    if (is_over) belief_->over = true;
    if (!is_over && mine_->exclusive == 1) belief_->mode = access::shared;
    keeper_.release(*mine_, level);
    if (is_over) past_.push_back(std::move(mine_));
}

void kept_lock_user::granted(kept_claim& what) {
    if (&what != wish_.get()) return check_.fail(setup_.name + " was granted what it did not ask for");
    asking_ = false;
    if (mine_) {
        note("has one more level");
        past_.push_back(std::move(wish_));
        if (mine_->exclusive > 0 && belief_->mode == access::shared) check_.upgraded_locally(*belief_, asked_at_);
        return skip();
    }
    mine_ = std::move(wish_);
    is_lost_ = mine_->of == nullptr;  // in the same moment
    if (is_lost_) {
        belief_ = std::make_shared<belief>();
        belief_->over = true;
        return skip();
    }
    const engine::lock_options& options = keeper_.setup().options;
    const bool reads = mine_->want == access::shared && options.kind == wire::lock_kind::read_write;
    note("holds " + keeper_.id_of(*mine_));
    belief_ = check_.believes_locally({.lock = keeper_.lock(),
                                       .id = keeper_.id_of(*mine_),
                                       .until = keeper_.valid_until(*mine_) + process_.slept(),
                                       .mode = reads ? access::shared : access::exclusive,
                                       .lease = options.lease,
                                       .asked = asked_at_});
    keeper_.track(*mine_, belief_);
    skip();
}

bool kept_lock_user::is_expected(errc why) const {
    const bool is_about_its_hold = why == errc::would_deadlock || why == errc::lost || why == errc::not_held;
    return (is_about_its_hold && mine_) || !process_.calm_since(asked_at_);
}

void kept_lock_user::refused(kept_claim& what, errc why) {
    if (&what != wish_.get()) return check_.fail(setup_.name + " was refused what it did not ask for");
    asking_ = false;
    note("is refused, code " + std::to_string(static_cast<int>(why)));
    check_.told(setup_.name, why);
    if (!is_expected(why)) check_.wrongly_refused(keeper_.lock(), setup_.name, why);
    past_.push_back(std::move(wish_));
    skip();
}

void kept_lock_user::lost(kept_claim& what, errc) {
    if (&what == mine_.get()) is_lost_ = true;
}

}  // namespace holdfast::sim::explore
