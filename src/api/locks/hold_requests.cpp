#include "api/locks/hold_requests.hpp"

#include "api/locks/kept_hold.hpp"
#include "api/operations/blocking.hpp"

namespace holdfast::api {

// A position in the queue, or a try.
class hold_requests::ask final : public engine::acquire_completion {
public:
    ask(hold_requests& whole, const effect& what) : number(what.number), mode(what.mode), whole_(whole) {}

    const std::uint64_t number;
    const engine::access mode;
    bool is_expected = false;

private:
    void acquired(engine::hold& held) override { whole_.on_acquired(*this, held); }
    void refused(const engine::refusal& why) override { whole_.on_refused(*this, why); }

    hold_requests& whole_;
};

class hold_requests::upgrade_request final : public engine::acquire_completion {
public:
    upgrade_request(hold_requests& whole, std::uint64_t number) : number_(number), whole_(whole) {}

private:
    void acquired(engine::hold& held) override {
        hold_requests& whole = whole_;
        const std::uint64_t number = number_;
        whole.upgrades_.erase(number);  // this object
        whole.lock_.hear([&](auto& machine, instant now, auto& out) {
            machine.upgraded(number, held.token(), held.ceiling(), now, out);
        });
    }
    void refused(const engine::refusal& why) override {
        hold_requests& whole = whole_;
        const std::uint64_t number = number_;
        const auto told = std::make_shared<const engine::refusal>(why);
        whole.upgrades_.erase(number);
        whole.lock_.hear(
            [&](auto& machine, instant now, auto& out) { machine.upgrade_refused(number, told, now, out); });
    }

    const std::uint64_t number_;
    hold_requests& whole_;
};

namespace {

// Nobody waits for it but the core, which does not go before.
class counted_request final : public engine::hold_completion {
public:
    explicit counted_request(core& where) : core_(where) { core_.release_is_posted(); }

private:
    void answered(const std::optional<engine::refusal>&) override {
        core& where = core_;
        delete this;
        where.posted_release_has_ended();
    }

    core& core_;
};

}  // namespace

hold_requests::hold_requests(core& where, kept_lock& lock) : core_(where), lock_(lock) {}
hold_requests::~hold_requests() = default;

void hold_requests::carry_out(const effect& what) {
    const instant now = boot_now();
    const auto asked = asks_.find(what.number);
    const auto upgraded = upgrades_.find(what.number);
    switch (what.what) {
        case effect::kind::ask:
            return begin_ask(what);
        case effect::kind::extend:
            if (asked != asks_.end()) core_.engine().extend(*asked->second, what.limit.deadline, now);
            return;
        case effect::kind::cancel:
            if (asked != asks_.end()) core_.engine().cancel(*asked->second, errc::cancelled, now);
            return;
        case effect::kind::cancel_upgrade:
            if (upgraded != upgrades_.end()) core_.engine().cancel(*upgraded->second, errc::cancelled, now);
            return;
        case effect::kind::upgrade:
            return begin_upgrade(what);
        case effect::kind::downgrade:
            return make_less(what);
        case effect::kind::release:
        case effect::kind::abandon:
            return end_hold(what);
        case effect::kind::renew: {
            const auto hold = lock_.find_hold(what.number);
            if (hold && hold->held() != nullptr) core_.engine().want_numbers(*hold->held(), now);
            return;
        }
        case effect::kind::wake:
            return core_.kept().wake(what.at, lock_.weak_from_this());
        default:
            return;
    }
}

void hold_requests::begin_ask(const effect& what) {
    const auto [made, is_new] = asks_.emplace(what.number, std::make_unique<ask>(*this, what));
    ask& one = *made->second;
    // The thread that waits for it drives the loop, if there is one.
    one.is_expected = !lock_.has_driver();
    if (one.is_expected) core_.loop().expect_in_background();
    core_.engine().acquire(
        one, {.keys = lock_.keys(), .options = lock_.definition().options, .want = what.mode, .limit = what.limit},
        boot_now());
}

void hold_requests::end_ask(std::uint64_t number) {
    const auto found = asks_.find(number);
    if (found == asks_.end()) return;
    if (found->second->is_expected) core_.loop().expected_has_come();
    asks_.erase(found);
}

void hold_requests::on_acquired(const ask& answered, engine::hold& held) {
    const std::uint64_t number = answered.number;
    const engine::local::hold_facts facts{.mode = answered.mode,
                                          .valid_until = held.valid_until(),
                                          .proved_at = held.proved_at(),
                                          .token = held.token(),
                                          .ceiling = held.ceiling(),
                                          .wanted = held.is_wanted(),
                                          .marked = held.is_kept()};
    const auto keep_alive = lock_.shared_from_this();
    const auto face = std::allocate_shared<kept_hold>(recycling_allocator<kept_hold>(), core_, keep_alive);
    hold_face::of(held, face);
    end_ask(number);
    core_.kept().has_hold(keep_alive, boot_now());
    lock_.add_hold(number, face, facts);
}

void hold_requests::on_refused(const ask& answered, const engine::refusal& why) {
    const std::uint64_t number = answered.number;
    const auto told = std::make_shared<const engine::refusal>(why);
    const auto keep_alive = lock_.shared_from_this();
    end_ask(number);
    lock_.hear([&](auto& machine, instant now, auto& out) { machine.ask_refused(number, told, now, out); });
}

void hold_requests::begin_upgrade(const effect& what) {
    const auto hold = lock_.find_hold(what.number);
    auto made = std::make_unique<upgrade_request>(*this, what.number);
    engine::acquire_completion& request = *made;
    upgrades_[what.number] = std::move(made);
    if (hold && hold->held() != nullptr) {
        core_.engine().upgrade(*hold->held(), request, what.limit, boot_now());
    } else {
        request.refused({errc::lost, "", {}, {}});
    }
}

void hold_requests::make_less(const effect& what) {
    const auto hold = lock_.find_hold(what.number);
    if (!hold || hold->held() == nullptr || hold->held()->levels(engine::access::exclusive) == 0) return;
    engine::hold& h = *hold->held();
    const instant now = boot_now();
    if (h.levels(engine::access::shared) == 0) {
        core_.engine().downgrade(h, *new counted_request(core_), answer_by(core_, h, now), now);
    } else {
        release_last(core_, h, engine::access::exclusive, now);
    }
}

void hold_requests::release_last(core& where, engine::hold& held, engine::access level, instant now) {
    where.engine().release(held, level, new counted_request(where), answer_by(where, held, now), now);
}

void hold_requests::end_hold(const effect& what) {
    const auto hold = lock_.take_hold(what.number);
    if (!hold || hold->held() == nullptr) return;
    if (!lock_.has_hold()) core_.kept().has_no_hold(lock_);
    engine::hold& h = *hold->held();
    const instant now = boot_now();
    core_.recorder().on_given_back(what.at == never ? std::chrono::nanoseconds(0) : now - what.at);
    if (what.what == effect::kind::abandon) {
        hold->forget();
        return core_.engine().abandon(h, now);
    }
    const bool reads = h.levels(engine::access::shared) > 0;
    if (reads && h.levels(engine::access::exclusive) > 0) {
        core_.engine().release(h, engine::access::exclusive, nullptr, now, now);
    }
    release_last(core_, h, reads ? engine::access::shared : engine::access::exclusive, now);
}

}  // namespace holdfast::api
