#include "api/locks/kept_lock.hpp"

#include "api/locks/kept_hold.hpp"
#include "api/operations/blocking.hpp"
#include "base/recycled.hpp"

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

// --- the machine and its effects

kept_lock::kept_lock(core& where, const lock_definition& lock)
    : core_(where),
      lock_(lock),
      fast_(lock.options.kind, where.max_depth()),
      machine_(settings_of(where, lock)),
      requests_(where, *this) {}

kept_lock::~kept_lock() {
    if (core_.forked()) return;
    core_.kept().has_no_hold(*this);
    core_.kept().forget(keys()->lock());
}

bool kept_lock::is_like(const lock_definition& other) const noexcept {
    return lock_.options == other.options && lock_.keep == other.keep && lock_.passes == other.passes;
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
    core_.recorder().on_local_grants(1, 0, 0);
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
    face->hold_ = known_hold(known.hold);
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
                face.hold_ = known_hold(each.who->of->number);
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
    core_.recorder().on_local_grants(now.grants - counted_.grants, now.passes - counted_.passes,
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
        requests_.carry_out(next);
    }
    where.posted_release_has_ended();
}

std::shared_ptr<kept_hold> kept_lock::known_hold(std::uint64_t number) {
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
            wish->hold_ = known_hold(said.mine->of->number);
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

void kept_lock::add_hold(std::uint64_t ask, const std::shared_ptr<kept_hold>& hold,
                         const engine::local::hold_facts& facts) {
    with_machine([&](instant now) {
        newest_ = hold;
        hold->number = machine_.acquired(ask, facts, now, effects_);
        holds_.emplace(hold->number, hold);
        return 0;
    });
}

std::shared_ptr<kept_hold> kept_lock::find_hold(std::uint64_t number) {
    const std::lock_guard held(mutex_);
    return known_hold(number);
}

std::shared_ptr<kept_hold> kept_lock::take_hold(std::uint64_t number) {
    const std::lock_guard held(mutex_);
    auto taken = known_hold(number);
    holds_.erase(number);
    if (newest_ == taken) newest_.reset();
    return taken;
}

bool kept_lock::is_in_use(std::uint64_t hold) {
    const std::lock_guard held(mutex_);
    return machine_.is_used(hold) || fast_.any();
}

}  // namespace holdfast::api
