#include "api/operations/blocking.hpp"

#include <utility>

namespace holdfast::api {

bool may_block() noexcept {
    return !serial_section::inside_any() && !loop::driven_by_this_thread();
}

void check_may_block() {
    if (!may_block()) throw error(errc::would_deadlock, "a blocking call inside the library's own loop");
}

void blocking_acquire::wait(std::stop_token stop) {
    if (stop.stop_requested()) cancel_now(errc::cancelled);  // not started yet: nothing is sent
    start(usual_sending(where()));
    if (!stop.stop_possible()) return where().loop().until(answered_);
    canceller cancel(*this);
    {
        const std::stop_callback on_stop(std::move(stop), [&] {
            if (where().forked()) return;
            cancel.entered = true;
            where().enter(cancel);
        });
        where().loop().until(answered_);
    }
    // The callback has returned or will never run, but its task may still wait to enter the section.
    if (cancel.entered) where().loop().until(cancel.done);
}

void blocking_acquire::canceller::run() {
    owner_.cancel_now(errc::cancelled);
    owner_.where().loop().end(done);
}

boost::system::error_code blocking_hold_operation::wait() {
    start(usual_sending(where()));
    where().loop().until(answered_);
    return result();
}

}  // namespace holdfast::api
