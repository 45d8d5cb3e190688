#include "api/operations/operation.hpp"

#include "base/recycled.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <new>
#include <utility>

namespace holdfast::api {

void enter(core& where, serial_task& task, sending how) {
    if (how == sending::at_once) return where.enter(task);
    if (!where.leave(task)) return;
    try {
        boost::asio::post(where.loop().context(), [&where] { where.run_what_was_left(); });
    } catch (const std::bad_alloc&) {
        where.run_what_was_left();
    }
}

sending usual_sending(core& where) {
    return where.loop().has_company() ? sending::with_others : sending::at_once;
}

instant answer_by(const core& where, const engine::hold& held, instant now) {
    return std::min(now + where.request_timeout(), std::max(now, held.valid_until()));
}

acquire_operation::acquire_operation(std::shared_ptr<core> where, engine::acquire_terms terms, face wish)
    : core_(std::move(where)),
      terms_(std::move(terms)),
      face_(wish == face::wanted ? std::allocate_shared<hold_face>(recycling_allocator<hold_face>(), *core_) : nullptr),
      upgrades_(false) {}

acquire_operation::acquire_operation(std::shared_ptr<hold_face> target, engine::patience limit)
    : core_(target->where().shared_from_this()), face_(std::move(target)), upgrades_(true) {
    terms_.limit = limit;
}

void acquire_operation::run() {
    if (cancelled_early_) return refused({*cancelled_early_, core_->display(), {}, {}});
    running_ = true;
    if (!upgrades_) return core_->engine().acquire(*this, std::move(terms_), boot_now());
    if (face_->held() == nullptr) return refused({errc::not_held, "it was released meanwhile", {}, {}});
    core_->engine().upgrade(*face_->held(), *this, terms_.limit, boot_now());
}

void acquire_operation::cancel_now(errc why) {
    if (!running_) {
        cancelled_early_ = why;
        return;
    }
    core_->engine().cancel(*this, why, boot_now());
}

void acquire_operation::acquired(engine::hold& held) {
    hold_number_ = held.id().counter();
    if (face_) face_ = hold_face::of(held, std::move(face_));
    finished();
}

hold_operation::hold_operation(std::shared_ptr<hold_face> target, what kind)
    : face_(std::move(target)), core_(face_->where()), kind_(kind) {}

hold_operation::hold_operation(core& where, owned_hold target, what kind)
    : core_(where), owned_(std::move(target)), kind_(kind) {}

void hold_operation::run() {
    const instant now = boot_now();
    engine::hold* const held = target();
    if (held == nullptr) return answered(engine::refusal{errc::not_held, "the caller does not hold it", {}, {}});
    if (kind_ == what::check) {
        const bool good = core_.engine().is_held(*held, now);
        return answered(good ? std::nullopt : std::optional(engine::refusal{errc::lost, "", {}, {}}));
    }
    const auto level = kind_ == what::release_shared ? engine::access::shared : engine::access::exclusive;
    if (kind_ != what::renew && held->levels(level) == 0) {
        return answered(engine::refusal{errc::held_other_mode, "the caller holds it in the other mode", {}, {}});
    }
    found_ = true;
    if (kind_ == what::renew) return core_.engine().renew(*held, *this, now);
    const instant at_the_latest = answer_by(core_, *held, now);
    if (kind_ == what::downgrade) return core_.engine().downgrade(*held, *this, at_the_latest, now);
    core_.engine().release(*held, level, this, at_the_latest, now);
}

}  // namespace holdfast::api
