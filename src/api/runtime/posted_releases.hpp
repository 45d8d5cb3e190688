// Counts releases that nobody waits for, so that a core does not go while one is under way.
//
// A release counts from before it enters the section until it has ended. The last owner of the core calls wait() before
// the core goes.
#pragma once

#include "api/runtime/loop.hpp"
#include "base/serial_section.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

namespace holdfast::api {

class posted_releases {
public:
    posted_releases(serial_section& section, loop& driven) : section_(section), loop_(driven) {}

    // From any thread.
    void begin() noexcept { ++under_way_; }
    // Inside the section.
    void end();
    // Returns when none is under way; at `latest` in any case, if on_timer() is called then.
    void wait(instant latest, instant now);
    // Inside the section.
    void on_timer(instant now) { end_waits(now); }
    instant deadline() const noexcept;

private:
    struct waiter {
        instant latest;
        loop::wait over;
    };

    void end_waits(instant now);

    serial_section& section_;
    loop& loop_;
    std::atomic<unsigned> under_way_ = 0;
    std::vector<waiter*> waiters_;  // inside the section
};

}  // namespace holdfast::api
