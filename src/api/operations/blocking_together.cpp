#include "api/operations/blocking_together.hpp"

namespace holdfast::api {

void blocking_together::run() {
    core_->engine().begin_together();
    for (part& one : parts_) one.begin();
    core_->engine().end_together(boot_now());
}

void blocking_together::wait(std::stop_token stop) {
    enter(*core_, *this, usual_sending(*core_));
    if (!stop.stop_possible()) return core_->loop().until(answered_);
    canceller cancel(*this);
    {
        const std::stop_callback on_stop(std::move(stop), [&] {
            if (core_->forked()) return;
            cancel.entered = true;
            core_->enter(cancel);
        });
        core_->loop().until(answered_);
    }
    // The callback has returned or will never run, but its task may still wait to enter the section.
    if (cancel.entered) core_->loop().until(cancel.done);
}

void blocking_together::canceller::run() {
    for (part& one : owner_.parts_) one.cancel_now(errc::cancelled);
    owner_.core_->loop().end(done);
}

}  // namespace holdfast::api
