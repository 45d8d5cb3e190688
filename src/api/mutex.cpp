#include <holdfast/mutex.hpp>

#include "api/asynchronous.hpp"
#include "api/blocking.hpp"
#include "api/lease_access.hpp"
#include "api/thread_owner.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {
namespace {

constexpr milliseconds shortest_lease{10};

// Not having got a lock is an answer, not an error, where the caller set the limit.
bool is_plain_no(errc code) {
    return code == errc::busy || code == errc::timed_out;
}

}  // namespace

struct mutex::parts {
    std::shared_ptr<api::core> where;
    std::string name;
    mutex_options options;
    std::shared_ptr<const scripts::lock_keys> keys;

    engine::acquire_terms terms(engine::owner_id owner, milliseconds lease, engine::waiting wait,
                                instant deadline) const {
        return {.keys = keys,
                .owner = owner,
                .lease = lease,
                .renewing = options.renew ? engine::renewal::automatic : engine::renewal::none,
                .limit = {wait, deadline},
                .max_repeats = options.max_repeats};
    }

    // Whether not getting the lock is an answer or an error.
    enum class no { is_answer, is_error };

    void check_may_wait() const {
        where->check_not_forked();
        api::check_may_block();
    }

    bool lock_thread(engine::waiting wait, instant deadline, no refusal) const {
        check_may_wait();
        api::blocking_acquire request(where, terms(api::this_thread_as_owner(), options.lease, wait, deadline),
                                      api::acquire_operation::face::not_wanted);
        request.wait({});
        if (!request.acquired()) return answer_no(request.why(), refusal);
        api::thread_locked(where);
        return true;
    }

    lease acquire(engine::waiting wait, instant deadline, acquire_options call, no refusal) const {
        check_may_wait();
        api::blocking_acquire request(where, terms(owner_of(call), chosen_lease(call), wait, deadline),
                                      api::acquire_operation::face::wanted);
        request.wait(std::move(call.stop));
        if (request.acquired()) return api::lease_access::make(request.held());
        const engine::refusal& why = request.why();
        if (call.why_not != nullptr) *call.why_not = {why.code, why.holder, why.holder_left};
        answer_no(why, refusal);
        return {};
    }

    milliseconds chosen_lease(const acquire_options& call) const {
        const milliseconds chosen = call.lease == milliseconds(0) ? options.lease : call.lease;
        check_lease(chosen);
        return chosen;
    }

    void check_lease(milliseconds lease) const {
        if (lease >= shortest_lease && lease <= where->max_lease()) return;
        throw error(errc::bad_option, "a lease must be from 10 ms to the client's max_lease, which is " +
                                          std::to_string(where->max_lease().count()) + " ms");
    }

    static engine::owner_id owner_of(const acquire_options& call) {
        return call.owner ? engine::owner_id{call.owner->number()} : engine::owner_id::nobody;
    }

    bool answer_no(const engine::refusal& why, no refusal) const {
        if (refusal == no::is_answer && is_plain_no(why.code)) return false;
        throw error(why.code, describe(why));
    }

    std::string describe(const engine::refusal& why) const {
        const std::string server = where->settings().display();
        std::string text = "lock '" + name + "'";
        if (why.detail.find(server) == std::string::npos) text += " on " + server;
        if (!why.detail.empty()) text += ": " + why.detail;
        if (!why.holder.empty()) text += ", held by " + why.holder;
        if (why.holder_left) text += " for another " + std::to_string(why.holder_left->count()) + " ms";
        return text;
    }

    instant within(milliseconds wait) const {
        return wait >= detail::for_ever_from ? never : boot_now() + std::max(wait, milliseconds(0));
    }
    instant request_deadline() const { return within(where->settings().request_timeout); }
};

mutex::mutex(const client& client, std::string name, mutex_options options) : parts_(std::make_unique<parts>()) {
    const auto naming = options.keys == keys::raw ? scripts::key_naming::raw : scripts::key_naming::tagged;
    parts_->where = client.shared_core();
    parts_->keys = std::make_shared<const scripts::lock_keys>(
        scripts::make_keys(scripts::lock_name(name), naming, options.prefix));
    parts_->name = std::move(name);
    parts_->options = std::move(options);
    parts_->check_lease(parts_->options.lease);
}

mutex::~mutex() = default;

const std::string& mutex::name() const noexcept {
    return parts_->name;
}

std::string mutex::place_in_order() const {
    return parts_->where->settings().display() + ' ' + parts_->keys->lock;
}

void mutex::lock() {
    parts_->lock_thread(engine::waiting::in_line, never, parts::no::is_error);
}

bool mutex::try_lock() {
    return parts_->lock_thread(engine::waiting::not_at_all, parts_->request_deadline(), parts::no::is_answer);
}

bool mutex::try_lock_within(milliseconds wait) {
    if (wait <= milliseconds(0)) return try_lock();
    return parts_->lock_thread(engine::waiting::in_line, parts_->within(wait), parts::no::is_answer);
}

void mutex::unlock() noexcept {
    boost::system::error_code ignored;
    unlock(ignored);
}

void mutex::unlock(boost::system::error_code& ec) noexcept {
    if (parts_->where->forked()) {
        ec = make_error_code(errc::forked);
        return;
    }
    if (!api::may_block()) {
        ec = make_error_code(errc::would_deadlock);
        return;
    }
    api::blocking_hold_operation request(*parts_->where, {api::this_thread_as_owner(), parts_->keys},
                                         api::hold_operation::what::release);
    ec = request.wait();
    if (request.found()) api::thread_unlocked(parts_->where);
}

lease mutex::acquire(acquire_options options) {
    return parts_->acquire(engine::waiting::in_line, never, std::move(options), parts::no::is_error);
}

lease mutex::try_acquire(acquire_options options) {
    return parts_->acquire(engine::waiting::not_at_all, parts_->request_deadline(), std::move(options),
                           parts::no::is_answer);
}

lease mutex::try_acquire_within(milliseconds wait, acquire_options options) {
    if (wait <= milliseconds(0)) return try_acquire(std::move(options));
    return lease(
        parts_->acquire(engine::waiting::in_line, parts_->within(wait), std::move(options), parts::no::is_answer));
}

std::shared_ptr<api::core> mutex::shared_core() const {
    return parts_->where;
}

void mutex::start_acquire(milliseconds wait, acquire_options options, std::unique_ptr<acquire_completion> handler) {
    parts_->where->check_not_forked();
    const bool waits = wait > milliseconds(0);
    const instant deadline = wait == for_ever ? never : waits ? parts_->within(wait) : parts_->request_deadline();
    auto terms = parts_->terms(parts::owner_of(options), parts_->chosen_lease(options),
                               waits ? engine::waiting::in_line : engine::waiting::not_at_all, deadline);
    api::async_acquire::start(parts_->where, std::move(terms), std::move(options.stop), std::move(handler));
}

}  // namespace holdfast
