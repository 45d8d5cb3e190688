#include <holdfast/lease.hpp>

#include "api/locks/kept_hold.hpp"
#include "api/locks/local_waits.hpp"
#include "api/locks/lock_definition.hpp"
#include "api/operations/asynchronous.hpp"
#include "api/operations/blocking.hpp"
#include "api/operations/blocking_command.hpp"
#include "api/operations/hold_face.hpp"
#include "api/operations/posted_release.hpp"
#include "base/race_detector.hpp"
#include "wire/kind.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

using what = api::hold_operation::what;

what release_of(mode kind) noexcept {
    return kind == mode::shared ? what::release_shared : what::release;
}

// Of a local grant: only a renewal needs the server.
boost::system::error_code act_locally(api::local_face& face, what kind) {
    if (kind == what::release) return face.lock().release(face, engine::access::exclusive);
    if (kind == what::release_shared) return face.lock().release(face, engine::access::shared);
    return face.lock().downgrade(face);
}

// What a renewal is asked of. Null: a local grant that is lost.
std::shared_ptr<api::hold_face> renewed_by(std::shared_ptr<api::hold_face> face) {
    if (face->local() == nullptr) return face;
    return face->is_lost() ? nullptr : face->local()->hold();
}

boost::system::error_code ask(std::shared_ptr<api::hold_face> face, what kind, afterwards* left = nullptr) noexcept {
    try {
        if (face->where().forked()) return make_error_code(errc::forked);
        if (face->local() != nullptr && kind != what::renew) return act_locally(*face->local(), kind);
        if (kind == what::renew) face = renewed_by(std::move(face));
        if (!face) return make_error_code(errc::lost);
        if (api::may_block()) {
            api::blocking_hold_operation operation(std::move(face), kind);
            const auto result = operation.wait();
            if (left != nullptr) *left = operation.left();
            return result;
        }
        // This thread drives the loop and cannot wait for it: the operation goes on in the background.
        if (kind == what::downgrade) api::async_hold_operation::start(std::move(face), kind, nullptr);
        if (kind == what::release) api::posted_release::start(std::move(face), engine::access::exclusive);
        if (kind == what::release_shared) api::posted_release::start(std::move(face), engine::access::shared);
        return make_error_code(errc::would_deadlock);
    } catch (const std::bad_alloc&) {
        return make_error_code(errc::outcome_unknown);
    }
}

std::optional<errc> why_no_upgrade(const std::shared_ptr<api::hold_face>& face, mode kind) noexcept {
    if (!face) return errc::not_held;
    return kind == mode::shared ? std::nullopt : std::optional(errc::held_other_mode);
}

std::optional<errc> why_no_downgrade(const std::shared_ptr<api::hold_face>& face, mode kind) noexcept {
    if (!face) return errc::not_held;
    const bool can = kind == mode::exclusive && wire::kind_of(face->kind()).has_shared_mode();
    return can ? std::nullopt : std::optional(errc::held_other_mode);
}

}  // namespace

lease::lease() noexcept = default;
lease::lease(std::shared_ptr<api::hold_face> face, holdfast::mode kind) noexcept
    : core_(face->where().shared_from_this()), face_(std::move(face)), mode_(kind) {}
lease::lease(lease&&) noexcept = default;

lease& lease::operator=(lease&& other) noexcept {
    if (this != &other) {
        post_release();
        core_ = std::move(other.core_);
        face_ = std::move(other.face_);
        mode_ = other.mode_;
    }
    return *this;
}

lease::~lease() {
    post_release();
}

void lease::post_release() noexcept {
    const bool holds = face_ && !core_->forked();
    if (holds) race_detector::before_release(face_->keys().lock());
    if (holds && face_->local() != nullptr) {
        act_locally(*face_->local(), release_of(mode_));
    } else if (holds && !api::posted_release::start(face_, api::to_access(mode_))) {
        release();
    }
    face_.reset();
    core_.reset();
}

void api::lease_access::release_together(std::span<lease> leases) noexcept {
    try {
        std::vector<std::shared_ptr<hold_face>> faces;
        core* where = nullptr;
        for (lease& one : leases) {
            if (!one.face_ || one.core_->forked() || one.face_->local() != nullptr || one.mode_ != mode::exclusive)
                continue;
            if (where != nullptr && where != one.core_.get()) continue;
            where = one.core_.get();
            faces.push_back(one.face_);
        }
        if (faces.size() > 1) {
            for (const auto& face : faces) race_detector::before_release(face->keys().lock());
            posted_release::start_together(faces);
            for (lease& one : leases) {
                if (std::ranges::find(faces, one.face_) == faces.end()) continue;
                one.face_.reset();
                one.core_.reset();
            }
        }
    } catch (const std::bad_alloc&) {
        // One by one, then.
    }
    for (auto last = leases.rbegin(); last != leases.rend(); ++last) *last = lease();
}

std::uint64_t lease::token() const noexcept {
    return face_ ? face_->token() : 0;
}

milliseconds lease::validity() const noexcept {
    if (!face_ || face_->is_lost() || face_->where().forked()) return milliseconds(0);
    return std::chrono::duration_cast<milliseconds>(face_->valid_until() - boot_now());
}

std::stop_token lease::lost() const {
    return face_ ? face_->lost() : std::stop_token();
}

std::string lease::id() const {
    return face_ ? face_->id() : std::string();
}

std::size_t lease::waiters() const {
    if (!face_) throw error(errc::not_held, "an empty lease");
    std::size_t count = 0;
    api::ask_server(face_->where(), {"ZCARD", face_->keys().queue()}, [&count](const redis::reply_view& reply) {
        count = static_cast<std::size_t>(reply.to_integer().value_or(0));
    });
    return count;
}

boost::system::error_code lease::renew() noexcept {
    return face_ ? ask(face_, what::renew) : make_error_code(errc::not_held);
}

boost::system::error_code lease::release() noexcept {
    afterwards not_wanted;
    return release(not_wanted);
}

boost::system::error_code lease::release(afterwards& left_behind) noexcept {
    left_behind = {};
    if (!face_) return make_error_code(errc::not_held);
    race_detector::before_release(face_->keys().lock());
    const auto kept = std::move(core_);
    return ask(std::exchange(face_, nullptr), release_of(mode_), &left_behind);
}

lease lease::upgrade_within(milliseconds wait, upgrade_options options) {
    if (const auto why = why_no_upgrade(face_, mode_)) throw error(*why, "an upgrade");
    face_->where().check_not_forked();
    api::check_may_block();
    if (face_->local() != nullptr) return upgrade_locally(wait, std::move(options));
    api::blocking_acquire request(face_, api::to_patience(wait, face_->where().request_timeout()));
    request.wait(std::move(options.stop));
    if (request.acquired()) {
        race_detector::on_acquired(face_->keys().lock());
        return lease(request.held(), holdfast::mode::exclusive);
    }
    return no_upgrade(request.why(), wait, options);
}

lease lease::upgrade_locally(milliseconds wait, upgrade_options options) {
    auto& mine = *face_->local();
    api::blocking_local request(mine.lock().shared_from_this());
    auto face = request.upgrade(std::static_pointer_cast<api::local_face>(face_),
                                api::to_patience(wait, face_->where().request_timeout()), std::move(options.stop));
    if (face) {
        race_detector::on_acquired(face_->keys().lock());
        return lease(std::move(face), holdfast::mode::exclusive);
    }
    return no_upgrade(request.why(), wait, options);
}

lease lease::no_upgrade(const refusal& why, milliseconds wait, const upgrade_options& options) {
    if (options.why_not != nullptr) *options.why_not = why;
    if (api::is_plain_no(why.code, wait)) return {};
    throw error(why.code,
                api::describe_refusal("upgrade of '" + face_->keys().lock() + "'", face_->where().display(), why),
                why.recovers_in);
}

lease lease::downgrade() {
    if (const auto why = why_no_downgrade(face_, mode_)) throw error(*why, "a downgrade");
    face_->where().check_not_forked();
    api::check_may_block();
    race_detector::before_release(face_->keys().lock());
    lease reading(std::exchange(face_, nullptr), holdfast::mode::shared);
    core_.reset();
    ask(reading.face_, what::downgrade);  // on failure the hold is lost, which lost() reports
    return reading;
}

namespace {

using hold_completion = detail::completion<boost::system::error_code>;
using lease_completion = detail::completion<boost::system::error_code, lease>;

// Starts the operation, or completes it at once if there is nothing to start.
void start(std::shared_ptr<api::hold_face> face, what kind, std::unique_ptr<hold_completion> handler) {
    if (face && !face->where().forked() && face->local() != nullptr && kind != what::renew) {
        hold_completion& told = *handler;
        return told.complete(std::move(handler), act_locally(*face->local(), kind));
    }
    if (face && kind == what::renew) {
        face = renewed_by(std::move(face));
        if (!face) {
            hold_completion& told = *handler;
            return told.complete(std::move(handler), make_error_code(errc::lost));
        }
    }
    if (face && !face->where().forked())
        return api::async_hold_operation::start(std::move(face), kind, std::move(handler));
    hold_completion& told = *handler;
    told.complete(std::move(handler), make_error_code(face ? errc::forked : errc::not_held));
}

void refuse(std::unique_ptr<lease_completion> handler, errc why) {
    lease_completion& told = *handler;
    told.complete(std::move(handler), make_error_code(why), lease());
}

}  // namespace

void lease::start_renew(std::unique_ptr<detail::completion<boost::system::error_code>> handler) {
    start(face_, what::renew, std::move(handler));
}

void lease::start_release(std::unique_ptr<detail::completion<boost::system::error_code>> handler) {
    if (face_) race_detector::before_release(face_->keys().lock());
    const auto kept = std::move(core_);
    start(std::exchange(face_, nullptr), release_of(mode_), std::move(handler));
}

void lease::start_upgrade(milliseconds wait, std::unique_ptr<lease_completion> handler) {
    auto why = why_no_upgrade(face_, mode_);
    if (!why && face_->where().forked()) why = errc::forked;
    if (why) return refuse(std::move(handler), *why);
    const auto limit = api::to_patience(wait, face_->where().request_timeout());
    if (face_->local() != nullptr) {
        const auto request = std::make_shared<api::async_local>(core_, face_->local()->lock().shared_from_this(),
                                                                holdfast::mode::exclusive, std::move(handler));
        return request->upgrade(std::static_pointer_cast<api::local_face>(face_), limit);
    }
    api::async_acquire::start(face_, limit, std::move(handler));
}

namespace {

// Passes the reading lease on to the handler, whatever the server answered.
class downgrade_completion final : public hold_completion {
public:
    downgrade_completion(std::unique_ptr<lease_completion> handler, std::shared_ptr<api::hold_face> face)
        : handler_(std::move(handler)), face_(std::move(face)) {}

    void complete(std::unique_ptr<hold_completion> self, boost::system::error_code result) override {
        const auto keep_alive = std::move(self);
        lease_completion& told = *handler_;
        told.complete(std::move(handler_), result, api::lease_access::make(std::move(face_), mode::shared));
    }
    bool can_be_cancelled() const override { return false; }
    void on_cancellation(std::function<void()>) override {}

private:
    std::unique_ptr<lease_completion> handler_;
    std::shared_ptr<api::hold_face> face_;
};

}  // namespace

void lease::start_downgrade(std::unique_ptr<lease_completion> handler) {
    auto why = why_no_downgrade(face_, mode_);
    if (!why && face_->where().forked()) why = errc::forked;
    if (why) return refuse(std::move(handler), *why);
    race_detector::before_release(face_->keys().lock());
    const auto kept = std::move(core_);
    const auto face = std::exchange(face_, nullptr);
    if (face->local() != nullptr) {
        const auto result = act_locally(*face->local(), what::downgrade);
        lease_completion& told = *handler;
        return told.complete(std::move(handler), result, api::lease_access::make(face, holdfast::mode::shared));
    }
    api::async_hold_operation::start(face, what::downgrade,
                                     std::make_unique<downgrade_completion>(std::move(handler), face));
}

}  // namespace holdfast
