#include <holdfast/lockable.hpp>

#include "api/locks/lease_access.hpp"
#include "api/locks/lock_setup.hpp"
#include "api/operations/asynchronous.hpp"
#include "api/operations/blocking.hpp"
#include "api/operations/posted_release.hpp"
#include "api/operations/refusals.hpp"
#include "api/runtime/thread_locks.hpp"
#include "api/runtime/thread_owner.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
struct lockable::parts {
    std::shared_ptr<api::core> where;
    std::shared_ptr<const wire::lock_keys> keys;
    api::lock_setup setup;
    api::thread_locks locked;

    engine::acquire_terms terms(engine::owner_id owner, mode kind, milliseconds lease, milliseconds wait) const {
        return {.keys = keys,
                .kind = setup.kind,
                .prefer = setup.prefer,
                .want = api::to_access(kind),
                .upgrading = setup.upgrades,
                .stripes = setup.stripes,
                .owner = owner,
                .lease = lease,
                .renewing = setup.renewing,
                .limit = api::to_patience(wait, where->request_timeout()),
                .max_repeats = setup.max_repeats,
                .acknowledged_by = setup.acknowledged_by,
                .yield_after_ms = setup.yield_after_ms};
    }

    void check_may_wait() const {
        where->check_not_forked();
        api::check_may_block();
    }

    bool lock_thread(mode kind, milliseconds wait) {
        check_may_wait();
        const api::lock_count count = api::locked_by_this_thread(where);
        api::blocking_acquire request(where, terms(api::this_thread_as_owner(), kind, setup.lease, wait),
                                      api::acquire_operation::face::not_wanted);
        request.wait({});
        if (!request.acquired()) return answer_no(request.why(), wait);
        api::count_up(count);
        locked.add(request.hold_number(), api::to_access(kind), count);
        return true;
    }

    lease acquire(mode kind, milliseconds wait, acquire_options call) const {
        check_may_wait();
        api::blocking_acquire request(where, terms(owner_of(call), kind, chosen_lease(call), wait),
                                      api::acquire_operation::face::wanted);
        request.wait(std::move(call.stop));
        if (request.acquired()) return api::lease_access::make(request.held(), kind);
        const engine::refusal& why = request.why();
        if (call.why_not != nullptr) *call.why_not = {why.code, why.holder, why.holder_left, why.recovers_in};
        answer_no(why, wait);
        return {};
    }

    milliseconds chosen_lease(const acquire_options& call) const {
        const milliseconds chosen = call.lease == milliseconds(0) ? setup.lease : call.lease;
        check_lease(chosen);
        return chosen;
    }

    void check_lease(milliseconds lease) const {
        if (lease >= where->shortest_lease() && lease <= where->max_lease()) return;
        throw error(errc::bad_option, "a lease must be from " + std::to_string(where->shortest_lease().count()) +
                                          " ms to the client's max_lease, which is " +
                                          std::to_string(where->max_lease().count()) + " ms");
    }

    // A WAIT must not look like a server that hangs.
    void check_replicas(redis::acknowledgement wanted) const {
        using limits = engine::packed_acknowledgement;
        if (wanted.replicas > limits::most_replicas) {
            throw error(errc::bad_option, "replicas must be at most " + std::to_string(limits::most_replicas));
        }
        const milliseconds longest = std::min(where->shortest_request_timeout() / 2, limits::longest_time);
        if (wanted.within < milliseconds(1) || wanted.within > longest) {
            throw error(errc::bad_option, "replica_timeout must be from 1 ms to half the request timeout, here " +
                                              std::to_string(longest.count()) + " ms");
        }
    }

    static std::uint16_t checked_yield(milliseconds after) {
        constexpr milliseconds shortest{10}, longest{1000};
        if (after != milliseconds(0) && (after < shortest || after > longest)) {
            throw error(errc::bad_option, "yield_after must be 0 or from 10 ms to 1 s");
        }
        return static_cast<std::uint16_t>(after.count());
    }

    static engine::owner_id owner_of(const acquire_options& call) {
        return call.owner ? engine::owner_id{call.owner->number()} : engine::owner_id::nobody;
    }

    // False if a plain no is the answer to such a wait; throws otherwise.
    bool answer_no(const engine::refusal& why, milliseconds wait) const {
        if (api::is_plain_no(why.code, wait)) return false;
        throw error(why.code, api::describe_refusal("lock '" + std::string(keys->name()) + "'", where->display(), why),
                    why.recovers_in);
    }
};

lockable::lockable(const client& client, const std::string& name, const api::named_setup& setup)
    : parts_(std::make_unique<parts>()) {
    parts_->where = client.shared_core();
    parts_->keys = setup.keys ? setup.keys : std::make_shared<const wire::lock_keys>(api::keys_of(name, setup));
    parts_->setup = setup;
    parts_->check_lease(setup.lease);
    if (setup.wanted_replicas.replicas > 0) {
        parts_->check_replicas(setup.wanted_replicas);
        parts_->setup.acknowledged_by = engine::packed_acknowledgement(setup.wanted_replicas);
    }
    parts_->setup.yield_after_ms = parts::checked_yield(setup.yield_after);
}

lockable::~lockable() {
    release_what_threads_locked({});
}

namespace {

using locked_by_threads = std::vector<api::thread_locks::entry>;

// Inside the section. Those that were unlocked through another object are not held any more, or are another hold.
void release_levels(api::core& where, const std::shared_ptr<const wire::lock_keys>& keys,
                    const locked_by_threads& entries, api::destroyed_lock& whole) {
    for (const api::thread_locks::entry& one : entries) {
        const engine::hold* const held = where.engine().find(one.owner, *keys);
        if (held == nullptr || held->id().counter() != one.hold) continue;
        if (!std::exchange(whole.is_told, true)) where.watcher().on_destroyed_while_locked(whole.name);
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
    locked_by_threads entries = parts_->locked.take_all();
    if (entries.empty()) return;
    try {
        if (!whole) whole = std::make_shared<api::destroyed_lock>(api::destroyed_lock{std::string(name())});
        parts_->where->post([&where = *parts_->where, keys = parts_->keys, entries = std::move(entries),
                             whole = std::move(whole)] { release_levels(where, keys, entries, *whole); });
    } catch (const std::bad_alloc&) {
        return;  // renewed until the thread ends
    }
}

std::string_view lockable::name() const noexcept {
    return parts_->keys->name();
}

std::string lockable::sort_key() const {
    return parts_->where->display() + ' ' + parts_->keys->lock();
}

void lockable::lock_as(mode kind) {
    parts_->lock_thread(kind, detail::for_ever);
}

bool lockable::try_lock_as(mode kind, milliseconds wait) {
    return parts_->lock_thread(kind, wait);
}

void lockable::unlock_as(mode kind) noexcept {
    if (parts_->where->forked()) return;
    parts_->locked.remove(api::to_access(kind));
    const auto where = parts_->where;  // who gets the lock next may destroy this object before start() returns
    const bool posted = api::posted_release::start(*where, {api::this_thread_as_owner(), parts_->keys},
                                                   api::to_access(kind), api::known_locks_of_this_thread(where));
    boost::system::error_code ignored;
    if (!posted) unlock_waiting(kind, ignored);
}

void lockable::unlock_as(mode kind, boost::system::error_code& ec) noexcept {
    if (unlock_waiting(kind, ec)) parts_->locked.remove(api::to_access(kind));
}

// True if there was something to unlock.
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
    api::blocking_hold_operation request(*parts_->where, {api::this_thread_as_owner(), parts_->keys},
                                         kind == mode::shared ? what::release_shared : what::release);
    ec = request.wait();
    if (request.found()) api::count_down(api::known_locks_of_this_thread(parts_->where));
    return request.found();
}

bool lockable::still_held() noexcept {
    api::blocking_hold_operation request(*parts_->where, {api::this_thread_as_owner(), parts_->keys},
                                         api::hold_operation::what::check);
    return !request.wait();
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
    auto terms = parts_->terms(parts::owner_of(options), kind, parts_->chosen_lease(options), wait);
    api::async_acquire::start(parts_->where, std::move(terms), std::move(options.stop), std::move(handler));
}

}  // namespace holdfast
