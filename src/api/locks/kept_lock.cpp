#include "api/locks/kept_lock.hpp"

#include "api/operations/asynchronous.hpp"
#include "base/race_detector.hpp"

#include <boost/asio/error.hpp>
#include <utility>

namespace holdfast::api {
namespace {

engine::local::settings settings_of(const core& where, const lock_definition& lock) {
    return {.lease = lock.options.lease,
            .keep = lock.keep,
            .passes = lock.passes,
            .kind = lock.options.kind,
            .prefer = lock.options.prefer,
            .max_depth = where.max_depth()};
}

}  // namespace

// --- requests to the engine

// A position in the queue, or a try.
class kept_lock::ask final : public engine::acquire_completion {
public:
    ask(kept_lock& whole, const effect& what) : number(what.number), mode(what.mode), whole_(whole) {}

    const std::uint64_t number;
    const engine::access mode;
    bool is_expected = false;

private:
    void acquired(engine::hold& held) override { whole_.on_acquired(*this, held); }
    void refused(const engine::refusal& why) override { whole_.on_refused(*this, why); }

    kept_lock& whole_;
};

class kept_lock::upgrade_request final : public engine::acquire_completion {
public:
    upgrade_request(kept_lock& whole, std::uint64_t number) : number_(number), whole_(whole) {}

private:
    void acquired(engine::hold& held) override {
        kept_lock& whole = whole_;
        const std::uint64_t number = number_;
        whole.upgrades_.erase(number);
        whole.with_machine([&](instant now) {
            whole.machine_.upgraded(number, held.token(), held.ceiling(), now, whole.effects_);
            return 0;
        });
    }
    void refused(const engine::refusal& why) override {
        kept_lock& whole = whole_;
        const std::uint64_t number = number_;
        const auto told = std::make_shared<const engine::refusal>(why);
        whole.upgrades_.erase(number);
        whole.with_machine([&](instant now) {
            whole.machine_.upgrade_refused(number, told, now, whole.effects_);
            return 0;
        });
    }

    const std::uint64_t number_;
    kept_lock& whole_;
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

// --- faces

local_face::local_face(const std::shared_ptr<kept_lock>& of)
    : hold_face(of->where(), of->definition().options.kind, of->keys()), lock_(of), claim_(*this) {}

std::uint64_t local_face::token() noexcept {
    const std::uint64_t known = taken_token_.load(std::memory_order_relaxed);
    return known != 0 ? known : lock_->token_of(*this);
}

std::string local_face::id() const {
    return hold_ ? hold_->id() : std::string();
}

instant local_face::valid_until() const noexcept {
    return hold_ ? hold_->valid_until() : instant{};
}

template <typename Event>
void kept_hold::tell(Event event) {
    const auto whole = whole_.lock();
    if (!whole || number == 0) return;
    whole->with_machine([&](instant now) {
        event(whole->machine_, now, whole->effects_);
        return 0;
    });
}

void kept_hold::on_validity(instant until) {
    hold_face::on_validity(until);
    tell([&](auto& machine, instant now, auto& out) { machine.on_validity(number, until, now, out); });
}

void kept_hold::on_lost(errc why) {
    hold_face::on_lost(why);
    tell([&](auto& machine, instant now, auto& out) { machine.on_lost(number, now, out); });
}

void kept_hold::on_wanted() {
    tell([&](auto& machine, instant now, auto& out) { machine.on_wanted(number, now, out); });
}

void kept_hold::on_ceiling(engine::fencing_token last) {
    tell([&](auto& machine, instant now, auto& out) { machine.on_ceiling(number, last, now, out); });
}

void kept_hold::on_proof(instant at) {
    tell([&](auto& machine, instant now, auto& out) { machine.on_proof(number, at, now, out); });
}

bool kept_hold::is_in_use() {
    const auto whole = whole_.lock();
    if (!whole) return false;
    const std::lock_guard held(whole->mutex_);
    return whole->machine_.is_used(number) || whole->fast_.any();
}

// --- the machine and its effects

kept_lock::kept_lock(core& where, const lock_definition& lock)
    : core_(where), lock_(lock), fast_(lock.options.kind, where.max_depth()), machine_(settings_of(where, lock)) {}

kept_lock::~kept_lock() {
    if (core_.forked()) return;
    core_.kept().has_no_hold(*this);
    core_.kept().forget(keys()->lock());
}

bool kept_lock::is_like(const lock_definition& other) const noexcept {
    return lock_.options == other.options && lock_.keep == other.keep && lock_.passes == other.passes;
}

// The clock is read when the mutex is held: a thread that slept before it must not believe in what has run out since.
template <typename Event>
std::invoke_result_t<Event, instant> kept_lock::with_machine(Event event) {
    messages out;
    guard held(mutex_);
    const bool is_open = close_fast_path();
    const instant now = boot_now();
    auto result = event(now);
    sort(out);
    if (is_open) open_fast_path(now);
    held.unlock();
    pass_on(out);
    return result;
}

// --- the fast path

// Returns whether somebody uses it, or would have.
bool kept_lock::close_fast_path() {
    if (!fast_.is_open()) return fast_.is_asked_for();
    const fast_users::tally known = fast_.close();
    machine_.count_in(known.hold, known.users, known.used);
    return true;
}

void kept_lock::open_fast_path(instant now) {
    const auto terms = machine_.fast_path(now);
    if (!terms) return;
    machine_.count_out(terms->hold);
    fast_.open(*terms);
}

bool kept_lock::acquire_fast(engine::owner_id thread, engine::access want, thread_locks& object, lock_count& count) {
    if (want != machine_.fast_mode() || !fast_.acquire(thread, object, count)) return false;
    core_.watcher().on_local_grants(1, 0, 0);
    return true;
}

bool kept_lock::release_fast(engine::owner_id thread, engine::access level, boost::system::error_code& result) {
    if (level != machine_.fast_mode()) return false;
    const auto said = fast_.release(thread);
    if (said != fast_users::answer::ask_machine) {
        result = {};
        return said == fast_users::answer::done;
    }
    const auto keep_alive = shared_from_this();  // the next user may destroy the last object
    const auto user = with_machine([&](instant now) {
        auto one = fast_.take(thread);
        if (one.levels == 0) return one;  // a destructor released it
        const auto why = machine_.release_fast(one.hold, now, effects_);
        result = why ? make_error_code(*why) : boost::system::error_code();
        return one;
    });
    if (user.levels == 0) return false;
    user.count->local -= user.levels;
    return true;
}

bool kept_lock::release_all_fast(const thread_locks& object) {
    return with_machine([&](instant now) {
        const auto users = fast_.take_all(object);
        for (const fast_users::user& each : users) {
            machine_.release_fast(each.hold, now, effects_);
            each.count->local -= each.levels;
        }
        return !users.empty();
    });
}

// A user without a claim gets one; no levels: there is none.
kept_lock::adopted kept_lock::adopt(engine::owner_id owner) {
    if (owner == engine::owner_id::nobody || !fast_.knows(owner)) return {};
    const auto face = std::allocate_shared<local_face>(recycling_allocator<local_face>(), shared_from_this());
    fast_users::user known = fast_.take(owner);
    face->claim_.owner = owner;
    machine_.adopt(known.hold, face->claim_, known.levels);
    face->serial_ = ++last_serial_ | local_serial;
    face->hold_ = find_hold(known.hold);
    face->self_ = face;
    return {std::move(known), face->serial_};
}

// By the owner's own thread: the lock object knows its levels by the claim from now on.
void kept_lock::adopt_this_thread(engine::owner_id owner) {
    const adopted mine = adopt(owner);
    for (unsigned i = 0; i < mine.user.levels; ++i) {
        mine.user.object->add(mine.serial, machine_.fast_mode(), mine.user.count);
    }
}

void kept_lock::sort(messages& out) {
    for (effect& each : effects_) {
        switch (each.what) {
            case effect::kind::granted: {
                local_face& face = local_face::of(*each.who);
                if (face.target_) {  // an upgrade: the reading face has the level now
                    face.target_->taken_token_.store(0, std::memory_order_relaxed);
                    out.all.push_back({each.what, std::move(face.self_), nullptr});
                    break;
                }
                face.hold_ = find_hold(each.who->of->number);
                out.all.push_back({each.what, face.self_, nullptr});
                break;
            }
            case effect::kind::refused:
                out.all.push_back({each.what, std::move(local_face::of(*each.who).self_), std::move(each.why)});
                break;
            case effect::kind::lost: {
                local_face& face = local_face::of(*each.who);
                face.taken_token_.store(each.who->token, std::memory_order_relaxed);
                out.all.push_back({each.what, face.self_, nullptr});
                break;
            }
            default:
                todo_.push_back(std::move(each));
                if (std::exchange(is_entering_, true)) break;
                alive_ = shared_from_this();
                core_.release_is_posted();
                out.enters = true;
        }
    }
    effects_.clear();
    const engine::local::tallies& now = machine_.counted();
    if (now.grants == counted_.grants && now.give_backs == counted_.give_backs) return;
    core_.watcher().on_local_grants(now.grants - counted_.grants, now.passes - counted_.passes,
                                    now.give_backs - counted_.give_backs);
    counted_ = now;
}

// Afterwards this object may be gone.
void kept_lock::pass_on(messages& out) {
    core& where = core_;
    for (const messages::one& each : out.all) {
        local_face& face = *each.who;
        if (each.what == effect::kind::lost) {
            face.tell_lost();
        } else if (each.what == effect::kind::refused) {
            std::exchange(face.waiter_, nullptr)->refused(*each.why);
        } else {
            std::exchange(face.waiter_, nullptr)->granted(face.target_ ? face.target_ : each.who);
        }
    }
    if (!out.enters) return;
    where.enter(*this);
    // Without a thread that drives the loop, the rest of an unfinished write would not be sent.
    if (where.is_sending() && may_block()) where.loop().glance();
}

void kept_lock::run() {
    core& where = core_;
    for (;;) {
        guard held(mutex_);
        if (todo_.empty()) {
            is_entering_ = false;
            const auto last = std::move(alive_);
            held.unlock();
            break;
        }
        const effect next = std::move(todo_.front());
        todo_.pop_front();
        held.unlock();
        carry_out(next);
    }
    where.posted_release_has_ended();
}

std::shared_ptr<kept_hold> kept_lock::find_hold(std::uint64_t number) {
    if (newest_ && newest_->number == number) return newest_;
    const auto found = holds_.find(number);
    return found == holds_.end() ? nullptr : found->second;
}

// --- for owners

engine::refusal kept_lock::describe(errc why) {
    engine::refusal out{why, {}, {}, {}};
    const bool is_held = why == errc::busy || why == errc::read_held || why == errc::write_held;
    if (!is_held || !newest_) return out;
    out.detail = "another owner in this process holds it";
    out.holder = newest_->id();
    out.kept = true;
    out.holder_left = std::chrono::duration_cast<milliseconds>(newest_->valid_until() - boot_now());
    return out;
}

kept_lock::answer kept_lock::answer_to(const std::shared_ptr<local_face>& wish, const engine::local::outcome& said) {
    using verdict = engine::local::outcome::verdict;
    switch (said.what) {
        case verdict::granted:
            wish->hold_ = find_hold(said.mine->of->number);
            wish->self_ = wish;
            return {answer::what::granted, wish};
        case verdict::reentered: {
            local_face& mine = local_face::of(*said.mine);
            return {answer::what::granted, mine.self_};
        }
        case verdict::waits:
            wish->self_ = wish;
            if (wish->claim_.upgrades != nullptr) wish->target_ = local_face::of(*wish->claim_.upgrades).self_;
            wish->waiter_->will_wait(machine_.has_position() || !machine_.holds_any());
            return {answer::what::waits, wish};
        default:
            return {answer::what::refused, nullptr, describe(said.why)};
    }
}

kept_lock::answer kept_lock::acquire(engine::owner_id owner, engine::access want, engine::patience limit,
                                     local_waiter& waiter) {
    const auto wish = std::allocate_shared<local_face>(recycling_allocator<local_face>(), shared_from_this());
    wish->claim_.owner = owner;
    wish->claim_.want = want;
    wish->claim_.limit = limit;
    wish->waiter_ = &waiter;
    return with_machine([&](instant now) {
        adopt_this_thread(owner);
        const auto said = machine_.acquire(wish->claim_, now, effects_);
        if (wish->serial_ == 0) wish->serial_ = ++last_serial_ | local_serial;
        return answer_to(wish, said);
    });
}

kept_lock::answer kept_lock::upgrade(local_face& reading, engine::patience limit, local_waiter& waiter) {
    const auto wish = std::allocate_shared<local_face>(recycling_allocator<local_face>(), shared_from_this());
    wish->claim_.limit = limit;
    wish->waiter_ = &waiter;
    return with_machine(
        [&](instant now) { return answer_to(wish, machine_.upgrade(reading.claim_, wish->claim_, now, effects_)); });
}

void kept_lock::cancel(local_face& waiting, errc why) {
    if (core_.forked()) return;
    with_machine([&](instant now) {
        machine_.cancel(waiting.claim_, why, now, effects_);
        return 0;
    });
}

boost::system::error_code kept_lock::release(local_face& mine, engine::access level) {
    if (core_.forked()) return make_error_code(errc::forked);
    std::shared_ptr<local_face> over;
    const auto why = with_machine([&](instant now) {
        const auto said = machine_.release(mine.claim_, level, now, effects_);
        if (mine.claim_.is == engine::local::claim::state::over) over = std::move(mine.self_);
        if (mine.claim_.token == 0) mine.taken_token_.store(0, std::memory_order_relaxed);
        return said;
    });
    return why ? make_error_code(*why) : boost::system::error_code();
}

boost::system::error_code kept_lock::downgrade(local_face& mine) {
    if (core_.forked()) return make_error_code(errc::forked);
    const auto why = with_machine([&](instant now) {
        const auto said = machine_.downgrade(mine.claim_, now, effects_);
        if (mine.claim_.token == 0) mine.taken_token_.store(0, std::memory_order_relaxed);
        return said;
    });
    return why ? make_error_code(*why) : boost::system::error_code();
}

std::uint64_t kept_lock::token_of(local_face& mine) {
    if (core_.forked()) return mine.claim_.token;
    return with_machine([&](instant now) {
        const std::uint64_t token = machine_.token_of(mine.claim_, now, effects_);
        mine.taken_token_.store(token, std::memory_order_relaxed);
        return token;
    });
}

bool kept_lock::release(engine::owner_id owner, engine::access level, boost::system::error_code& result) {
    std::shared_ptr<local_face> mine;
    const auto why = with_machine([&](instant now) -> std::optional<errc> {
        adopt_this_thread(owner);
        engine::local::claim* const found = machine_.find(owner);
        if (found == nullptr) return errc::not_held;
        local_face& face = local_face::of(*found);
        const auto said = machine_.release(*found, level, now, effects_);
        if (found->is == engine::local::claim::state::over) {
            mine = std::move(face.self_);
        } else {
            mine = face.self_;
        }
        if (found->token == 0) face.taken_token_.store(0, std::memory_order_relaxed);
        return said;
    });
    result = why ? make_error_code(*why) : boost::system::error_code();
    return mine != nullptr;
}

bool kept_lock::release_levels(engine::owner_id owner, std::uint64_t serial, unsigned exclusive, unsigned shared) {
    {
        const std::lock_guard held(mutex_);
        engine::local::claim* const found = machine_.find(owner);
        if (found == nullptr || local_face::of(*found).serial_ != serial) return false;
    }
    boost::system::error_code ignored;
    for (; exclusive > 0; --exclusive) release(owner, engine::access::exclusive, ignored);
    for (; shared > 0; --shared) release(owner, engine::access::shared, ignored);
    return true;
}

bool kept_lock::is_held_by(engine::owner_id owner) {
    const std::lock_guard held(mutex_);
    return fast_.knows(owner) || machine_.find(owner) != nullptr;
}

void kept_lock::abandon(engine::owner_id owner) {
    std::shared_ptr<local_face> over;
    with_machine([&](instant now) {
        adopt(owner);
        if (auto* const gone = machine_.abandon(owner, now, effects_)) over = std::move(local_face::of(*gone).self_);
        return 0;
    });
}

void kept_lock::add_object() {
    const std::lock_guard held(mutex_);
    ++objects_;
    if (!is_closed_) machine_.reopen();
}

void kept_lock::remove_object() {
    with_machine([&](instant now) {
        if (--objects_ == 0) machine_.close(now, effects_);
        return 0;
    });
}

void kept_lock::close() {
    with_machine([&](instant now) {
        is_closed_ = true;
        machine_.close(now, effects_);
        return 0;
    });
}

void kept_lock::give_back() {
    with_machine([&](instant now) {
        machine_.give_back(now, effects_);
        return 0;
    });
}

instant kept_lock::last_use() {
    const std::lock_guard held(mutex_);
    if (machine_.is_used() || fast_.any()) return boot_now();
    return std::max(machine_.unused_since(), fast_.last_use());
}

void kept_lock::on_timer() {
    with_machine([&](instant now) {
        machine_.on_timer(now, effects_);
        return 0;
    });
}

// --- inside the section

void kept_lock::carry_out(const effect& what) {
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
            guard held(mutex_);
            const auto hold = find_hold(what.number);
            held.unlock();
            if (hold && hold->held() != nullptr) core_.engine().want_numbers(*hold->held(), now);
            return;
        }
        case effect::kind::wake:
            return core_.kept().wake(what.at, weak_from_this());
        default:
            return;
    }
}

void kept_lock::begin_ask(const effect& what) {
    const auto [made, is_new] = asks_.emplace(what.number, std::make_unique<ask>(*this, what));
    ask& one = *made->second;
    // The thread that waits for it drives the loop, if there is one.
    one.is_expected = drivers_.load() == 0;
    if (one.is_expected) core_.loop().expect_in_background();
    core_.engine().acquire(one, {.keys = lock_.keys, .options = lock_.options, .want = what.mode, .limit = what.limit},
                           boot_now());
}

void kept_lock::end_ask(std::uint64_t number) {
    const auto found = asks_.find(number);
    if (found == asks_.end()) return;
    if (found->second->is_expected) core_.loop().expected_has_come();
    asks_.erase(found);
}

void kept_lock::on_acquired(const ask& answered, engine::hold& held) {
    const std::uint64_t number = answered.number;
    const engine::access mode = answered.mode;
    const auto face = std::allocate_shared<kept_hold>(recycling_allocator<kept_hold>(), core_, weak_from_this());
    hold_face::of(held, face);
    end_ask(number);
    const auto keep_alive = shared_from_this();
    core_.kept().has_hold(keep_alive, boot_now());
    const engine::local::hold_facts facts{.mode = mode,
                                          .valid_until = held.valid_until(),
                                          .proved_at = held.proved_at(),
                                          .token = held.token(),
                                          .ceiling = held.ceiling(),
                                          .wanted = held.is_wanted(),
                                          .marked = held.is_kept()};
    with_machine([&](instant now) {
        newest_ = face;
        const std::uint64_t next = machine_.acquired(number, facts, now, effects_);
        face->number = next;
        holds_.emplace(next, face);
        return 0;
    });
}

void kept_lock::on_refused(const ask& answered, const engine::refusal& why) {
    const std::uint64_t number = answered.number;
    const auto told = std::make_shared<const engine::refusal>(why);
    const auto keep_alive = shared_from_this();
    end_ask(number);
    with_machine([&](instant now) {
        machine_.ask_refused(number, told, now, effects_);
        return 0;
    });
}

void kept_lock::begin_upgrade(const effect& what) {
    guard held(mutex_);
    const auto hold = find_hold(what.number);
    held.unlock();
    auto made = std::make_unique<upgrade_request>(*this, what.number);
    engine::acquire_completion& request = *made;
    upgrades_[what.number] = std::move(made);
    if (hold && hold->held() != nullptr) {
        core_.engine().upgrade(*hold->held(), request, what.limit, boot_now());
    } else {
        request.refused({errc::lost, "", {}, {}});
    }
}

void kept_lock::make_less(const effect& what) {
    guard held(mutex_);
    const auto hold = find_hold(what.number);
    held.unlock();
    if (!hold || hold->held() == nullptr || hold->held()->levels(engine::access::exclusive) == 0) return;
    engine::hold& h = *hold->held();
    const instant now = boot_now();
    if (h.levels(engine::access::shared) == 0) {
        core_.engine().downgrade(h, *new counted_request(core_), answer_by(core_, h, now), now);
    } else {
        release_last(core_, h, engine::access::exclusive, now);
    }
}

void kept_lock::release_last(core& where, engine::hold& held, engine::access level, instant now) {
    where.engine().release(held, level, new counted_request(where), answer_by(where, held, now), now);
}

void kept_lock::end_hold(const effect& what) {
    std::shared_ptr<kept_hold> hold;
    {
        const guard held(mutex_);
        hold = find_hold(what.number);
        holds_.erase(what.number);
        if (newest_ == hold) newest_.reset();
    }
    if (!hold || hold->held() == nullptr) return;
    if (!newest_) core_.kept().has_no_hold(*this);
    engine::hold& h = *hold->held();
    const instant now = boot_now();
    core_.watcher().on_given_back(what.at == never ? std::chrono::nanoseconds(0) : now - what.at);
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

// --- threads

void blocking_local::will_wait(bool for_server) {
    drives_ = for_server;
    if (drives_) lock_->driver_comes();
}

// The waiting thread may be gone as soon as it sees the state.
void blocking_local::end() {
    if (drives_) return lock_->where().loop().end(driven_);
    state_.store(over, std::memory_order_release);
    futex_wake_one(&state_);
}

std::shared_ptr<local_face> blocking_local::wait(kept_lock::answer said, std::stop_token stop) {
    if (said.now == kept_lock::answer::what::granted) return std::move(said.face);
    if (said.now == kept_lock::answer::what::refused) {
        why_ = std::move(said.why);
        return nullptr;
    }
    const std::stop_callback on_stop(std::move(stop), [this, &said] { lock_->cancel(*said.face, errc::cancelled); });
    if (drives_) {
        lock_->where().loop().until(driven_);
        lock_->driver_goes();
    } else {
        while (state_.load(std::memory_order_acquire) == open) futex_wait(state_, open);
    }
    return std::move(face_);
}

std::shared_ptr<local_face> blocking_local::acquire(engine::owner_id owner, engine::access want, engine::patience limit,
                                                    std::stop_token stop) {
    return wait(lock_->acquire(owner, want, limit, *this), std::move(stop));
}

std::shared_ptr<local_face> blocking_local::upgrade(const std::shared_ptr<local_face>& reading, engine::patience limit,
                                                    std::stop_token stop) {
    return wait(lock_->upgrade(*reading, limit, *this), std::move(stop));
}

// --- handlers

void async_local::acquire(engine::owner_id owner, engine::patience limit, std::stop_token stop, refusal* why_not) {
    why_not_ = why_not;
    begin(std::move(stop));
    const auto want = to_access(kind_);
    answered(lock_->acquire(owner, want, limit, *this));
}

void async_local::upgrade(const std::shared_ptr<local_face>& reading, engine::patience limit) {
    begin({});
    answered(lock_->upgrade(*reading, limit, *this));
}

void async_local::begin(std::stop_token stop) {
    self_ = shared_from_this();
    const auto canceller = [this] {
        return [weak = weak_from_this()] {
            if (const auto live = weak.lock()) live->cancel();
        };
    };
    if (handler_->can_be_cancelled()) handler_->on_cancellation(canceller());
    if (stop.stop_possible()) on_stop_.emplace(std::move(stop), canceller());
}

void async_local::cancel() {
    std::shared_ptr<local_face> waits;
    {
        const std::lock_guard held(mutex_);
        is_cancelled_ = true;
        waits = waits_;
    }
    if (waits) lock_->cancel(*waits, errc::cancelled);
}

void async_local::answered(kept_lock::answer said) {
    if (said.now == kept_lock::answer::what::granted) return finish(std::move(said.face), nullptr);
    if (said.now == kept_lock::answer::what::refused) return finish(nullptr, &said.why);
    bool is_cancelled = false;
    {
        const std::lock_guard held(mutex_);
        if (is_over_) return;
        waits_ = said.face;
        is_cancelled = is_cancelled_;
    }
    if (is_cancelled) lock_->cancel(*said.face, errc::cancelled);
}

void async_local::finish(std::shared_ptr<local_face> face, const engine::refusal* why) {
    const auto keep_alive = std::move(self_);
    {
        const std::lock_guard held(mutex_);
        is_over_ = true;
        waits_.reset();
    }
    on_stop_.reset();
    auto& handler = *handler_;
    if (face) race_detector::on_acquired(face->keys().lock());
    if (face) return handler.complete(std::move(handler_), {}, lease_access::make(std::move(face), kind_));
    if (why_not_ != nullptr) *why_not_ = told_in_words(*why, *lock_->keys(), *core_);
    boost::system::error_code code = make_error_code(why->code);
    if (why->code == errc::cancelled) code = boost::asio::error::operation_aborted;
    handler.complete(std::move(handler_), code, lease());
}

}  // namespace holdfast::api
