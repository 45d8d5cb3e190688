#include "explore/lock_user.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim::explore {
namespace {

using engine::access;

// A request that does not wait in the queue, and every other answer, may take this long.
constexpr milliseconds answer_time{500};

// The engine may keep the listener as long as it likes; the user lives as long as its world.
std::shared_ptr<engine::hold_listener> borrowed(engine::hold_listener& listener) {
    return {std::shared_ptr<void>(), &listener};
}

}  // namespace

bool acquires(act what) {
    return what == act::acquire || what == act::try_once || what == act::read;
}

bool may_still_write(const std::vector<act>& steps, std::size_t at) {
    return std::find(steps.begin() + static_cast<std::ptrdiff_t>(at), steps.end(), act::write) != steps.end();
}

std::string_view name_of(act what) {
    constexpr std::string_view names[] = {"acquires",
                                          "tries",
                                          "reads",
                                          "upgrades",
                                          "downgrades",
                                          "releases",
                                          "looks whether it still holds",
                                          "writes",
                                          "asks for its number",
                                          "cancels"};
    return names[static_cast<std::size_t>(what)];
}

class lock_user::answer final : public engine::hold_completion {
public:
    answer(lock_user& whose, std::function<void(std::optional<errc> why_not)> check)
        : whose_(whose), check_(std::move(check)) {}
    void answered(const std::optional<engine::refusal>& why_not) override {
        is_done = true;
        --whose_.answers_due_;
        if (check_) check_(why_not ? std::optional(why_not->code) : std::nullopt);
    }
    bool is_done = false;

private:
    lock_user& whose_;
    std::function<void(std::optional<errc> why_not)> check_;
};

engine_process::engine_process(timeline& time, random_source& ids, client_setup setup, network& net)
    : client_(time, random_stream(setup.number), ids, std::move(setup), net) {}

lock_user::lock_user(timeline& time, client& process, checker& check, lock_user_setup setup)
    : time_(time), process_(process), check_(check), setup_(std::move(setup)) {}

std::string lock_user::describe() const {
    return setup_.name + (asking_ ? " waits" : held_ != nullptr ? " holds" : " is idle");
}

void lock_user::note(const std::string& what) const {
    if (setup_.trace) setup_.trace("  " + setup_.name + " " + what);
}

bool lock_user::may_step() const {
    if (at_ == steps().size()) return false;
    if (asking_) return steps()[at_] == act::cancel;
    return answers_due_ == 0;
}

std::string lock_user::next_step() const {
    return setup_.name + " " + std::string(name_of(steps()[at_]));
}

bool lock_user::is_to_skip() const {
    const act next = steps()[at_];
    if (acquires(next)) return is_ending_;
    if (held_ == nullptr) return true;
    if (next == act::upgrade) return is_ending_ || held_->levels(access::exclusive) > 0;
    if (next == act::downgrade) return held_->levels(access::exclusive) == 0;
    return next == act::cancel || next == act::number;
}

// Steps without a meaning are no choices.
void lock_user::skip() {
    while (at_ < steps().size() && !asking_ && is_to_skip()) ++at_;
}

void lock_user::step() {
    const act next = steps()[at_++];
    process_.when_awake([this, next] {
        switch (next) {
            case act::acquire:
                return ask(access::exclusive, engine::waiting::in_queue);
            case act::try_once:
                return ask(access::exclusive, engine::waiting::not_at_all);
            case act::read:
                return ask(access::shared, engine::waiting::in_queue);
            case act::upgrade:
                return upgrade();
            case act::downgrade:
                return downgrade();
            case act::release:
                return release();
            case act::check:
                may_write_ = engine::engine::is_held(*held_, now());
                return;
            case act::write:
                if (may_write_) setup_.guarded->take({turn_, held_->token()}, setup_.name);
                return;
            case act::number:
                return;
            case act::cancel:
                return cancel();
        }
    });
    skip();
}

void lock_user::ask(access want, engine::waiting wait) {
    if (is_ending_) return;
    asking_ = true;
    cancelled_ = false;
    asked_at_ = time_.now();
    patience_ = {.wait = wait, .deadline = never};
    if (wait == engine::waiting::not_at_all) patience_.deadline = now() + answer_time;
    if (wait == engine::waiting::in_queue && setup_.what.patience != milliseconds(0))
        patience_.deadline = now() + setup_.what.patience;
    ++serial_;
    if (patience_.deadline != never) expect_end(patience_.deadline + process_.slept(), serial_);
    if (setup_.deadlines_ignored) patience_.deadline = never;
    process_.engine().acquire(
        *this, {.keys = setup_.keys, .options = setup_.what.options, .want = want, .owner = {}, .limit = patience_},
        now());
}

void lock_user::upgrade() {
    if (held_ == nullptr) return;
    asking_ = true;
    cancelled_ = false;
    asked_at_ = time_.now();
    patience_ = {};
    ++serial_;
    check_.expect_change();
    process_.engine().upgrade(*held_, *this, patience_, now());
}

void lock_user::downgrade() {
    const auto asked = answers_.emplace_back(std::make_shared<answer>(*this, nullptr));
    ++answers_due_;
    belief_->mode = access::shared;
    check_.expect_change();
    process_.engine().downgrade(*held_, *asked, now() + answer_time, now());
    expect_answer(asked, time_.now() + answer_time);
}

// It believes in less before it asks for less.
void lock_user::release() {
    engine::hold& held = *held_;
    const access level = held.levels(access::exclusive) > 0 ? access::exclusive : access::shared;
    const unsigned exclusive = held.levels(access::exclusive) - (level == access::exclusive ? 1 : 0);
    const unsigned shared = held.levels(access::shared) - (level == access::shared ? 1 : 0);
    std::function<void(std::optional<errc>)> check;
    if (exclusive + shared == 0) {
        belief_->over = true;
        held_ = nullptr;
        check = [this, id = belief_->id, since = time_.now()](std::optional<errc> why_not) {
            check_.told_released(id, since, why_not);
        };
    } else if (exclusive == 0) {
        belief_->mode = access::shared;
        check_.expect_change();
    }
    const auto asked = answers_.emplace_back(std::make_shared<answer>(*this, std::move(check)));
    ++answers_due_;
    process_.engine().release(held, level, setup_.answers_ignored ? nullptr : asked.get(), now() + answer_time, now());
    expect_answer(asked, time_.now() + answer_time);
}

void lock_user::cancel() {
    if (!asking_) return;
    cancelled_ = true;
    if (!setup_.cancellations_ignored) process_.engine().cancel(*this, errc::cancelled, now());
    if (asking_) check_.fail(setup_.name + " still waits for an acquisition that it has cancelled");
}

void lock_user::expect_end(instant deadline, std::uint64_t serial) {
    time_.at(deadline + punctual, [this, serial] {
        if (!asking_ || serial != serial_ || process_.dead()) return;
        const instant now = time_.now();
        if (process_.paused() || now < process_.resumed_at() + after_a_pause)
            return expect_end(now + after_a_pause, serial);
        check_.fail(setup_.name + " waits beyond its deadline");
    });
}

void lock_user::expect_answer(const std::shared_ptr<answer>& asked, instant deadline) {
    time_.at(deadline + punctual, [this, asked] {
        if (asked->is_done || process_.dead()) return;
        const instant now = time_.now();
        if (process_.paused() || now < process_.resumed_at() + after_a_pause)
            return expect_answer(asked, now + after_a_pause);
        check_.fail(setup_.name + " was not answered in time");
    });
}

void lock_user::acquired(engine::hold& held) {
    asking_ = false;
    const std::string id = held.id().text(process_.engine().id());
    note("acquired by " + id + " token " + std::to_string(held.token()));
    if (held_ == nullptr) {
        const bool is_counted = held.options().kind == wire::lock_kind::semaphore;
        held_ = &held;
        granted_at_ = time_.now();
        turn_ = setup_.guarded->next_turn();
        may_write_ = false;
        held.listen(borrowed(*this));
        belief_ = check_.believes({.lock = held.terms().keys->lock(),
                                   .id = id,
                                   .token = held.token(),
                                   .until = held.valid_until() + process_.slept(),
                                   .mode = is_counted ? access::shared : held.terms().want,
                                   .lease = held.options().lease,
                                   .delay = setup_.what.delay,
                                   .asked = asked_at_,
                                   .permits = is_counted ? held.options().permits : 0,
                                   .limit = held.options().limit});
        if (held.valid_until() <= now()) check_.fail(setup_.name + " acquired a hold whose validity has ended");
    } else if (held.levels(access::exclusive) > 0 && belief_->mode == access::shared) {
        check_.upgraded(*belief_, held.token(), asked_at_);
    }
    skip();
}

// A user whose process had no trouble may be refused only for reasons of the lock itself.
bool lock_user::is_expected(errc why) const {
    const bool is_late = patience_.deadline <= now();
    switch (why) {
        case errc::busy:
        case errc::read_held:
        case errc::write_held:
        case errc::reserved:
            return patience_.wait == engine::waiting::not_at_all;
        case errc::timed_out:
            return is_late;
        case errc::no_quorum:
            return is_late || !process_.calm_since(asked_at_);
        case errc::cancelled:
            return cancelled_;
        case errc::would_deadlock:
        case errc::lost:
            return held_ != nullptr;
        default:
            return !process_.calm_since(asked_at_);
    }
}

void lock_user::refused(const engine::refusal& why) {
    asking_ = false;
    note("is refused, code " + std::to_string(static_cast<int>(why.code)));
    check_.told(setup_.name, why.code);
    check_.notes().told(why.holder, why.note);
    if (!is_expected(why.code)) check_.wrongly_refused(setup_.keys->lock(), setup_.name, why.code);
    skip();
}

void lock_user::on_validity(instant until) {
    check_.extended(belief_, until + process_.slept());
}

void lock_user::on_token(engine::fencing_token token) {
    belief_->token = token;
}

// After errc::lost the hold may be believed in until its validity ends: that time is meant for stopping work.
void lock_user::on_lost(errc why) {
    note("lost its hold, code " + std::to_string(static_cast<int>(why)));
    if (why != errc::lost) belief_->over = true;
    check_.lost.insert(belief_->id);
    const bool renews = setup_.what.options.renewing == engine::renewal::automatic;
    if (renews && process_.calm_since(granted_at_)) check_.lost_without_reason(*belief_);
}

}  // namespace holdfast::sim::explore
