#include "api/blocking.hpp"

#include <algorithm>

namespace holdfast::api {

void blocking_acquire::wait(std::stop_token stop, attach attach_lease, void* context) {
    attach_ = attach_lease;
    context_ = context;
    core_.enter(*this);
    if (!stop.stop_possible()) return core_.loop().until(answered_);
    canceller cancel(*this);
    {
        const std::stop_callback on_stop(std::move(stop), [&] {
            cancel.entered = true;
            core_.enter(cancel);
        });
        core_.loop().until(answered_);
    }
    // The callback has returned or will never run; but its task may still wait for its turn in the section.
    if (cancel.entered) core_.loop().until(cancel.done);
}

void blocking_acquire::canceller::run() {
    owner_.core_.engine().cancel(owner_, errc::cancelled, boot_now());
    owner_.core_.loop().end(done);
}

void blocking_acquire::run() {
    core_.engine().acquire(*this, std::move(terms_), boot_now());
}

void blocking_acquire::acquired(engine::hold& held) {
    if (attach_ != nullptr) attach_(context_, held);
    core_.loop().end(answered_);
}

void blocking_acquire::refused(const engine::refusal& why) {
    why_ = why;
    core_.loop().end(answered_);
}

std::optional<engine::refusal> blocking_hold_request::wait() {
    core_.enter(*this);
    core_.loop().until(answered_);
    return why_not_;
}

void blocking_hold_request::run() {
    const instant now = boot_now();
    engine::hold* const held = find_(core_, context_);
    if (held == nullptr)
        return answered(engine::refusal{errc::not_held, "the caller does not hold it", {}, {}});
    if (kind_ == what::renew) return core_.engine().renew(*held, *this, now);
    const instant answer_by =
        std::min(now + core_.settings().request_timeout, std::max(now, held->valid_until()));
    core_.engine().release(*held, this, answer_by, now);
}

void blocking_hold_request::answered(const std::optional<engine::refusal>& why_not) {
    why_not_ = why_not;
    core_.loop().end(answered_);
}

}  // namespace holdfast::api
