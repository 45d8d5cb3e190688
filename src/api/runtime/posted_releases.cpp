#include "api/runtime/posted_releases.hpp"

namespace holdfast::api {

void posted_releases::end() {
    if (--under_way_ == 0) end_waits(instant{});
}

// Each release ends when it is answered, or when a release would have been waited for no longer.
void posted_releases::wait(instant latest, instant now) {
    waiter mine{.latest = latest, .over = {}};
    section_.enter_with([&] {
        waiters_.push_back(&mine);
        end_waits(now);
    });
    loop_.until(mine.over);
}

void posted_releases::end_waits(instant now) {
    std::erase_if(waiters_, [&](waiter* each) {
        const bool is_over = under_way_ == 0 || each->latest <= now;
        if (is_over) loop_.end(each->over);
        return is_over;
    });
}

instant posted_releases::deadline() const noexcept {
    instant due = never;
    for (const waiter* const each : waiters_) due = std::min(due, each->latest);
    return due;
}

}  // namespace holdfast::api
