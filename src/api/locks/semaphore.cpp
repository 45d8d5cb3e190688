#include <holdfast/semaphore.hpp>

#include "api/locks/lock_definition.hpp"
#include "api/operations/asynchronous.hpp"
#include "api/operations/blocking.hpp"
#include "api/operations/blocking_command.hpp"
#include "api/operations/hold_face.hpp"
#include "api/runtime/client_access.hpp"
#include "api/runtime/system_random.hpp"
#include "base/race_detector.hpp"
#include "redis/resp/error_reply.hpp"
#include "wire/semaphore/semaphore_requests.hpp"

#include <functional>
#include <utility>

namespace holdfast {

struct semaphore::parts {
    std::shared_ptr<api::core> where;
    api::lock_definition lock;

    std::string what() const { return "semaphore '" + std::string(lock.keys->name()) + "'"; }

    engine::acquire_terms terms(milliseconds wait, std::size_t permits, const acquire_options& call) const {
        where->check_not_forked();
        if (call.owner) throw error(errc::bad_option, "a semaphore has no owners: its permits belong to leases");
        engine::lock_options options = lock.options;
        options.permits = api::to_permits(permits);
        options.note = api::note_for(lock, call.note);
        if (call.lease != milliseconds(0)) {
            options.lease = call.lease;
            api::check_lease(*where, options);
        }
        return {.keys = lock.keys, .options = options, .limit = api::to_patience(wait, where->request_timeout())};
    }

    // Throws for a failure or an error reply.
    void ask(const api::question& call, const std::function<bool(const redis::reply_view&)>& read) const {
        failure why{errc::protocol_error, where->display() + ": a lock script was answered with something else"};
        bool is_read = false;
        api::ask_server(*where, {&call, 1}, [&](std::size_t, const redis::reply_view& reply) {
            if (reply.is_error()) {
                why = redis::classify_error(reply.text(), where->display());
            } else {
                is_read = read(reply);
            }
        });
        if (!is_read) throw error(why.code, why.detail);
    }

    wire::semaphore_answer look() const {
        std::optional<wire::semaphore_answer> found;
        ask([&](redis::command& out) { wire::write_semaphore_look(out, *lock.keys); },
            [&](const redis::reply_view& reply) {
                found = wire::read_semaphore_look(reply);
                return found.has_value();
            });
        return std::move(*found);
    }

    wire::resize_answer resize(const wire::resize_request& request) const {
        std::optional<wire::resize_answer> answer;
        const wire::lock_terms terms{.keys = *lock.keys,
                                     .kind = lock.options.kind,
                                     .fence_retention = where->fence_retention(),
                                     .limit = lock.options.limit};
        ask([&](redis::command& out) { wire::write_resize(out, terms, request); },
            [&](const redis::reply_view& reply) {
                answer = wire::read_resize(reply);
                return answer.has_value();
            });
        return std::move(*answer);
    }

    lease answer_no(const refusal& why, milliseconds wait, const acquire_options& call) const {
        if (call.why_not != nullptr) *call.why_not = why;
        if (api::is_plain_no(why.code, wait)) return {};
        throw error(why.code, api::describe_refusal(what(), where->display(), why), why.recovers_in);
    }
};

semaphore::semaphore(const client& client, const std::string& name, std::size_t limit, const semaphore_options& options)
    : parts_(std::make_unique<parts>(
          parts{api::core_of(client), api::define_semaphore(*api::core_of(client), name, limit, options)})) {}
semaphore::~semaphore() = default;

std::string_view semaphore::name() const noexcept {
    return parts_->lock.keys->name();
}

std::size_t semaphore::limit() const noexcept {
    return parts_->lock.options.limit;
}

std::shared_ptr<api::core> semaphore::shared_core() const {
    return parts_->where;
}

lease semaphore::acquire_within(milliseconds wait, std::size_t permits, acquire_options options) {
    auto terms = parts_->terms(wait, permits, options);
    api::check_may_block();
    api::blocking_acquire request(parts_->where, std::move(terms), api::acquire_operation::face::wanted);
    request.wait(std::move(options.stop));
    if (!request.acquired()) return parts_->answer_no(request.why(), wait, options);
    race_detector::on_acquired(parts_->lock.keys->lock());
    return api::lease_access::make(request.held(), mode::exclusive);
}

void semaphore::start_acquire(milliseconds wait, std::size_t permits, acquire_options options,
                              std::unique_ptr<acquire_completion> handler) {
    auto terms = parts_->terms(wait, permits, options);
    api::async_acquire::start(parts_->where, std::move(terms), std::move(options.stop), options.why_not,
                              std::move(handler));
}

std::size_t semaphore::available() const {
    const auto found = parts_->look();
    const std::uint64_t present = found.limit ? found.limit->present : limit();
    const std::uint64_t out = found.out();
    return static_cast<std::size_t>(present > out ? present - out : 0);
}

std::vector<semaphore_holder> semaphore::holders() const {
    std::vector<semaphore_holder> result;
    for (const wire::seen_holder& one : parts_->look().holders) {
        result.push_back({one.id, one.permits, one.token.value_or(0), one.left.value_or(milliseconds(0))});
    }
    return result;
}

// The version that it replaces is named. If others replaced it meanwhile, theirs is named next.
void semaphore::resize(std::size_t limit) {
    using verdict = wire::resize_answer::verdict;
    constexpr int most_tries = 100;
    api::system_random random;
    const wire::client_id somebody(random);
    const std::string name = wire::hold_id(0, random).text(somebody);  // 128 random bits: used once
    const std::uint32_t wanted = api::to_permits(limit);
    const auto known = parts_->look().limit;
    std::string replaces = known ? known->version : "";
    for (int i = 0; i < most_tries; ++i) {
        wire::resize_answer answer = parts_->resize({name, wanted, replaces});
        if (answer.what == verdict::done) return;
        if (answer.what == verdict::other_limit) {
            throw error(errc::limit_differs, parts_->what() + ": its limit is " + std::to_string(answer.declared));
        }
        replaces = std::move(answer.version);
    }
    throw error(errc::timed_out, parts_->what() + ": others resize it at the same time");
}

}  // namespace holdfast
