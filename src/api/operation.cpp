#include "api/operation.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::api {

acquire_operation::acquire_operation(std::shared_ptr<core> where, engine::acquire_terms terms, face wish)
    : core_(std::move(where)),
      terms_(std::move(terms)),
      face_(wish == face::wanted ? std::make_shared<hold_face>(core_) : nullptr) {}

void acquire_operation::start() {
    core_->enter(*this);
}

void acquire_operation::run() {
    if (cancelled_early_) return refused({*cancelled_early_, core_->settings().display(), {}, {}});
    running_ = true;
    core_->engine().acquire(*this, std::move(terms_), boot_now());
}

void acquire_operation::cancel_now(errc why) {
    if (!running_) {
        cancelled_early_ = why;
        return;
    }
    core_->engine().cancel(*this, why, boot_now());
}

void acquire_operation::acquired(engine::hold& held) {
    if (face_) face_ = hold_face::of(held, std::move(face_));
    finished();
}

void acquire_operation::refused(const engine::refusal& why) {
    why_ = why;
    finished();
}

hold_operation::hold_operation(std::shared_ptr<hold_face> target, what kind)
    : face_(std::move(target)), core_(face_->where()), kind_(kind) {}

hold_operation::hold_operation(core& where, owned_hold target, what kind)
    : core_(where), owned_(std::move(target)), kind_(kind) {}

void hold_operation::start() {
    core_.enter(*this);
}

engine::hold* hold_operation::target() const {
    return face_ ? face_->held() : core_.engine().find(owned_.owner, *owned_.keys);
}

void hold_operation::run() {
    const instant now = boot_now();
    engine::hold* const held = target();
    if (held == nullptr) return answered(engine::refusal{errc::not_held, "the caller does not hold it", {}, {}});
    found_ = true;
    if (kind_ == what::renew) return core_.engine().renew(*held, *this, now);
    // A release waits for its answer no longer than the lock is worth.
    const instant answer_by = std::min(now + core_.settings().request_timeout, std::max(now, held->valid_until()));
    core_.engine().release(*held, engine::access::exclusive, this, answer_by, now);
}

void hold_operation::answered(const std::optional<engine::refusal>& why_not) {
    why_not_ = why_not;
    finished();
}

boost::system::error_code hold_operation::result() const noexcept {
    return why_not_ ? make_error_code(why_not_->code) : boost::system::error_code();
}

}  // namespace holdfast::api
