#include <holdfast/lock_all.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/shared_mutex.hpp>

#include "api/locks/kept_lock.hpp"
#include "api/locks/local_waits.hpp"
#include "api/locks/lock_definition.hpp"
#include "api/operations/asynchronous.hpp"
#include "api/operations/blocking_together.hpp"
#include "api/operations/hold_face.hpp"
#include "api/operations/posted_release.hpp"
#include "api/runtime/client_access.hpp"
#include "api/runtime/thread_locks.hpp"
#include "api/runtime/thread_owner.hpp"
#include "base/race_detector.hpp"
#include "wire/together.hpp"

#include <set>
#include <utility>

namespace holdfast {

struct lockable::parts {
    std::shared_ptr<api::core> where;
    api::lock_definition lock;
    api::thread_locks locked;
    std::shared_ptr<api::kept_lock> kept;  // null: every acquisition asks the server

    parts(const client& client, api::lock_definition chosen) : where(api::core_of(client)), lock(std::move(chosen)) {
        if (!lock.is_kept()) return;
        kept = where->kept().share(lock);
        lock.options.kept = false;  // of what goes to the server as if it were not kept
    }

    engine::acquire_terms terms(engine::owner_id owner, mode kind, milliseconds lease, milliseconds wait) const {
        engine::lock_options options = lock.options;
        options.lease = lease;
        return {.keys = lock.keys,
                .options = options,
                .want = api::to_access(kind),
                .owner = owner,
                .limit = api::to_patience(wait, where->request_timeout())};
    }

    // Of one call, with what it chose for itself.
    engine::acquire_terms terms(const acquire_options& call, mode kind, milliseconds wait) const {
        engine::acquire_terms chosen = terms(owner_of(call), kind, chosen_lease(call), wait);
        chosen.options.note = api::note_for(lock, call.note);
        return chosen;
    }

    void check_may_wait() const {
        where->check_not_forked();
        api::check_may_block();
    }

    // The kept lock that deals with an acquisition of this owner; null: the server does. Owners come first: who holds
    // the lock by any object of its name re-enters.
    std::shared_ptr<api::kept_lock> deals_with(engine::owner_id owner, bool may_hold_of_engine, bool is_usual) const {
        if (!kept) {
            const bool ask = owner != engine::owner_id::nobody && where->kept().any();
            return ask ? where->kept().held_by(owner, *lock.keys) : nullptr;
        }
        if (owner == engine::owner_id::nobody) return is_usual ? kept : nullptr;
        if (may_hold_of_engine || kept->has_siblings() || !is_usual) {
            if (auto mine = where->kept().held_by(owner, *lock.keys)) return mine;
            if (may_hold_of_engine && holds_of_engine(owner)) return nullptr;
        }
        return is_usual ? kept : nullptr;
    }

    bool holds_of_engine(engine::owner_id owner) const {
        api::blocking_hold_operation request(*where, {owner, lock.keys}, api::hold_operation::what::check);
        return request.wait() != errc::not_held;
    }

    bool lock_thread(mode kind, milliseconds wait) {
        check_may_wait();
        api::lock_count count = api::locked_by_this_thread(where);
        const engine::owner_id owner = api::this_thread_as_owner();
        const bool may_hold_of_engine = !count || count->of_engine > 0;
        if (kept && !may_hold_of_engine && kept->acquire_fast(owner, api::to_access(kind), locked, count)) {
            race_detector::on_acquired(lock.keys->lock());
            return true;
        }
        if (kept || where->kept().any()) {
            if (const auto dealer = deals_with(owner, may_hold_of_engine, true)) {
                return lock_thread_locally(dealer, kind, wait, count);
            }
        }
        api::blocking_acquire request(where, terms(owner, kind, lock.options.lease, wait),
                                      api::acquire_operation::face::not_wanted);
        request.wait({});
        if (!request.acquired()) return answer_no(request.why(), wait);
        race_detector::on_acquired(lock.keys->lock());
        api::count_up(count);
        locked.add(request.hold_number(), api::to_access(kind), count);
        return true;
    }

    bool lock_thread_locally(const std::shared_ptr<api::kept_lock>& dealer, mode kind, milliseconds wait,
                             const api::lock_count& count) {
        api::blocking_local request(dealer);
        const auto face = request.acquire(api::this_thread_as_owner(), api::to_access(kind),
                                          api::to_patience(wait, where->request_timeout()), {});
        if (!face) return answer_no(request.why(), wait);
        race_detector::on_acquired(lock.keys->lock());
        if (count) ++count->local;
        locked.add(face->serial(), api::to_access(kind), count);
        return true;
    }

    // False: the thread has no local grant.
    bool unlock_thread_locally(mode kind, boost::system::error_code& result) {
        if (!kept && !where->kept().any()) return false;
        const engine::owner_id owner = api::this_thread_as_owner();
        if (kept && kept->release_fast(owner, api::to_access(kind), result)) return true;
        const auto release = [&](api::kept_lock& dealer) {
            return dealer.release(owner, api::to_access(kind), result);
        };
        bool done = kept && release(*kept);
        if (!done && (!kept || kept->has_siblings())) {
            const auto dealer = where->kept().held_by(owner, *lock.keys);
            done = dealer && release(*dealer);
        }
        if (!done) return false;
        if (result == errc::held_other_mode) return true;
        if (const auto count = api::known_locks_of_this_thread(where)) --count->local;
        locked.remove(api::to_access(kind));
        return true;
    }

    lease acquire(mode kind, milliseconds wait, acquire_options call) const {
        check_may_wait();
        const engine::owner_id owner = owner_of(call);
        const bool is_usual = call.lease == milliseconds(0) || call.lease == lock.options.lease;
        auto asked = terms(call, kind, wait);
        if (kept || where->kept().any()) {
            if (const auto dealer = deals_with(owner, owner != engine::owner_id::nobody, is_usual)) {
                api::blocking_local request(dealer);
                auto face = request.acquire(owner, api::to_access(kind),
                                            api::to_patience(wait, where->request_timeout()), std::move(call.stop));
                if (face) {
                    race_detector::on_acquired(lock.keys->lock());
                    return api::lease_access::make(std::move(face), kind);
                }
                if (call.why_not != nullptr) *call.why_not = request.why();
                answer_no(request.why(), wait);
                return {};
            }
        }
        api::blocking_acquire request(where, std::move(asked), api::acquire_operation::face::wanted);
        request.wait(std::move(call.stop));
        if (request.acquired()) {
            race_detector::on_acquired(lock.keys->lock());
            return api::lease_access::make(request.held(), kind);
        }
        if (call.why_not != nullptr) *call.why_not = request.why();
        answer_no(request.why(), wait);
        return {};
    }

    // Returns false if the server is to be asked.
    bool start_locally(mode kind, milliseconds wait, acquire_options& call,
                       std::unique_ptr<acquire_completion>& handler) const {
        const engine::owner_id owner = owner_of(call);
        const bool is_usual = call.lease == milliseconds(0) || call.lease == lock.options.lease;
        const bool has_owner = owner != engine::owner_id::nobody;
        auto dealer = has_owner && where->kept().any() ? where->kept().held_by(owner, *lock.keys) : nullptr;
        const bool asks_engine_first = !dealer && has_owner;
        if (!dealer && is_usual) dealer = kept;
        if (!dealer) return false;
        const auto limit = api::to_patience(wait, where->request_timeout());
        const auto begin = [dealer, kind, owner, limit, why_not = call.why_not](
                               std::shared_ptr<api::core> core, std::stop_token stop,
                               std::unique_ptr<acquire_completion> told) {
            const auto request = std::make_shared<api::async_local>(std::move(core), dealer, kind, std::move(told));
            request->acquire(owner, limit, std::move(stop), why_not);
        };
        if (!asks_engine_first) {
            begin(where, std::move(call.stop), std::move(handler));
            return true;
        }
        // Only the section knows whether the owner holds the lock by an object that keeps nothing.
        where->post([begin, core = where, asked = terms(call, kind, wait), stop = std::move(call.stop),
                     why_not = call.why_not, told = std::move(handler)]() mutable {
            if (core->engine().find(asked.owner, *asked.keys) == nullptr) {
                return begin(std::move(core), std::move(stop), std::move(told));
            }
            api::async_acquire::start(std::move(core), std::move(asked), std::move(stop), why_not, std::move(told));
        });
        return true;
    }

    milliseconds chosen_lease(const acquire_options& call) const {
        if (call.lease == milliseconds(0)) return lock.options.lease;
        engine::lock_options options = lock.options;
        options.lease = call.lease;
        api::check_lease(*where, options);
        return call.lease;
    }

    static engine::owner_id owner_of(const acquire_options& call) {
        return call.owner ? engine::owner_id{api::owner_access::number(*call.owner)} : engine::owner_id::nobody;
    }

    // Returns false if the refusal is a plain "no" for such a wait. Throws otherwise.
    bool answer_no(const refusal& why, milliseconds wait) const {
        if (api::is_plain_no(why.code, wait)) return false;
        throw error(why.code,
                    api::describe_refusal("lock '" + std::string(lock.keys->name()) + "'", where->display(), why),
                    why.recovers_in);
    }
};

lockable::lockable(const client& client, api::lock_definition lock)
    : parts_(std::make_unique<parts>(client, std::move(lock))) {}

lockable::~lockable() {
    release_what_threads_locked({});
    if (!parts_->kept) return;
    if (parts_->where->forked()) {
        static_cast<void>(new std::shared_ptr(std::move(parts_->kept)));  // the parent's, with the parent's mutexes
    } else {
        parts_->kept->remove_object();
    }
}

namespace {

using locked_by_threads = std::vector<api::thread_locks::entry>;

// Inside the section. An entry is out of date if its thread unlocked through another object: then the thread holds
// nothing, or another hold.
void release_levels(api::core& where, const std::shared_ptr<const wire::lock_keys>& keys,
                    const locked_by_threads& entries, api::destroyed_lock& whole) {
    for (const api::thread_locks::entry& one : entries) {
        if ((one.hold & api::kept_lock::local_serial) != 0) {
            const auto dealer = where.kept().held_by(one.owner, *keys);
            if (!dealer || !dealer->release_levels(one.owner, one.hold, one.exclusive, one.shared)) continue;
            if (one.count) one.count->local -= one.exclusive + one.shared;
            if (!std::exchange(whole.is_told, true)) where.recorder().on_destroyed_while_locked(whole.name);
            continue;
        }
        const engine::hold* const held = where.engine().find(one.owner, *keys);
        if (held == nullptr || held->id().counter() != one.hold) continue;
        if (!std::exchange(whole.is_told, true)) where.recorder().on_destroyed_while_locked(whole.name);
        const auto release = [&](unsigned levels, engine::access level) {
            for (; levels > 0; --levels) {
                api::posted_release::start(where, {one.owner, keys, one.hold}, level, one.count);
            }
        };
        release(one.exclusive, engine::access::exclusive);
        release(one.shared, engine::access::shared);
    }
}

}  // namespace

void lockable::release_what_threads_locked(std::shared_ptr<api::destroyed_lock> whole) noexcept {
    if (parts_->where->forked()) return;
    const bool was_used = parts_->kept && parts_->kept->release_all_fast(parts_->locked);
    if (was_used) parts_->where->recorder().on_destroyed_while_locked(std::string(name()));
    locked_by_threads entries = parts_->locked.take_all();
    if (entries.empty()) return;
    try {
        if (!whole) whole = std::make_shared<api::destroyed_lock>(api::destroyed_lock{std::string(name())});
        parts_->where->post([&where = *parts_->where, keys = parts_->lock.keys, entries = std::move(entries),
                             whole = std::move(whole)] { release_levels(where, keys, entries, *whole); });
    } catch (const std::bad_alloc&) {
        return;  // the holds are renewed until their threads end
    }
}

std::string_view lockable::name() const noexcept {
    return parts_->lock.keys->name();
}

std::string lockable::sort_key() const {
    return parts_->where->display() + ' ' + parts_->lock.keys->lock();
}

void lockable::lock_as(mode kind) {
    parts_->lock_thread(kind, detail::for_ever);
}

bool lockable::try_lock_as(mode kind, milliseconds wait) {
    return parts_->lock_thread(kind, wait);
}

void lockable::unlock_as(mode kind) noexcept {
    if (parts_->where->forked()) return;
    race_detector::before_release(parts_->lock.keys->lock());
    boost::system::error_code ignored;
    if (parts_->unlock_thread_locally(kind, ignored)) return;
    parts_->locked.remove(api::to_access(kind));
    const auto where = parts_->where;  // the next holder may destroy this object before start() returns
    const bool posted = api::posted_release::start(*where, {api::this_thread_as_owner(), parts_->lock.keys},
                                                   api::to_access(kind), api::known_locks_of_this_thread(where));
    if (!posted) unlock_waiting(kind, ignored);
}

void lockable::unlock_as(mode kind, boost::system::error_code& ec) noexcept {
    race_detector::before_release(parts_->lock.keys->lock());
    if (!parts_->where->forked() && parts_->unlock_thread_locally(kind, ec)) return;
    if (unlock_waiting(kind, ec)) parts_->locked.remove(api::to_access(kind));
}

// Returns true if the thread held the lock in that mode.
bool lockable::unlock_waiting(mode kind, boost::system::error_code& ec) noexcept {
    if (parts_->where->forked()) {
        ec = make_error_code(errc::forked);
        return false;
    }
    if (!api::may_block()) {
        ec = make_error_code(errc::would_deadlock);
        return false;
    }
    using what = api::hold_operation::what;
    api::blocking_hold_operation request(*parts_->where, {api::this_thread_as_owner(), parts_->lock.keys},
                                         kind == mode::shared ? what::release_shared : what::release);
    ec = request.wait();
    if (request.found()) api::count_down(api::known_locks_of_this_thread(parts_->where));
    return request.found();
}

bool lockable::still_held() noexcept {
    api::blocking_hold_operation request(*parts_->where, {api::this_thread_as_owner(), parts_->lock.keys},
                                         api::hold_operation::what::check);
    return !request.wait();
}

// Owners of kept locks are known elsewhere; then each lock is acquired by itself.
bool lockable::can_go_with(const lockable& other) const {
    const engine::lock_options& options = parts_->lock.options;
    return parts_->where == other.parts_->where && !parts_->kept && !parts_->where->kept().any() &&
           options.kind == engine::lock_kind::mutex && options.replicas == 0 && !parts_->lock.keys->is_raw();
}

bool lockable::try_acquire_together(std::span<const lock_request> locks, const acquire_options& options,
                                    std::span<lease> out) {
    if (locks.size() < 2 || locks.size() > wire::most_together || options.stop.stop_requested()) return false;
    if (!options.note.empty()) return false;
    std::set<std::string_view> names;
    for (const lock_request& one : locks) {
        const lockable& lock = one.lock();
        if (!lock.can_go_with(locks.front().lock()) || !names.insert(lock.parts_->lock.keys->lock()).second)
            return false;
    }
    parts& first = *locks.front().lock().parts_;
    first.check_may_wait();
    api::blocking_together request(first.where);
    for (const lock_request& one : locks) {
        const parts& lock = *one.lock().parts_;
        request.add(lock.terms(parts::owner_of(options), mode::exclusive, lock.chosen_lease(options), milliseconds(0)));
    }
    request.wait(options.stop);
    for (std::size_t i = 0; i < locks.size(); ++i) {
        auto held = request.held(i);
        if (!held) continue;
        race_detector::on_acquired(held->keys().lock());
        out[i] = api::lease_access::make(std::move(held), mode::exclusive);
    }
    return request.all_acquired();
}

lease lockable::acquire_as(mode kind, milliseconds wait, acquire_options options) {
    return parts_->acquire(kind, wait, std::move(options));
}

std::shared_ptr<api::core> lockable::shared_core() const {
    return parts_->where;
}

void lockable::start_acquire(mode kind, milliseconds wait, acquire_options options,
                             std::unique_ptr<acquire_completion> handler) {
    parts_->where->check_not_forked();
    auto terms = parts_->terms(options, kind, wait);
    if (parts_->start_locally(kind, wait, options, handler)) return;
    api::async_acquire::start(parts_->where, std::move(terms), std::move(options.stop), options.why_not,
                              std::move(handler));
}

mutex::mutex(const client& client, const std::string& name, const mutex_options& options)
    : lockable(client, api::define(*api::core_of(client), name, options)) {}
mutex::~mutex() = default;

shared_mutex::shared_mutex(const client& client, const std::string& name, const shared_mutex_options& options)
    : lockable(client, api::define(*api::core_of(client), name, options)) {}
shared_mutex::shared_mutex(const client& client, api::lock_definition lock) : lockable(client, std::move(lock)) {}
shared_mutex::~shared_mutex() = default;

}  // namespace holdfast
