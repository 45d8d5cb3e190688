// A flag that poll() can wait for, beside other descriptors. It stays set until it is cleared.
#pragma once

#include <poll.h>

#include <chrono>

#include "support/sockets.hpp"

namespace holdfast::testing {

class stop_event {
public:
    stop_event();

    void set() noexcept;
    void clear() noexcept;
    bool is_set() const noexcept;
    int descriptor() const noexcept { return event_.get(); }

    /// False if the event came before the time was over.
    bool sleep_for(std::chrono::milliseconds time) const;

    /// Waits for `events` on the descriptor; false if the stop came first.
    bool wait_for(int fd, short events) const;

private:
    unique_fd event_;
};

}  // namespace holdfast::testing
