// The lock that a run is about: a plain one, one side of a read-write lock, or some permits of a semaphore.
//
// As with flock(1), -s is shared and -x is exclusive, and they exclude each other. A run with neither takes a plain
// lock, which is another kind of key in Redis: one that other programs use too. One name cannot be
// both kinds at the same time; the refusal names the option that the others have chosen.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/terminal/signals.hpp"
#include "cli/terminal/waiting_display.hpp"

#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast::cli {

// How long to wait: not at all (zero), so long, or without limit (nothing).
using patience = std::optional<std::chrono::milliseconds>;

enum class side { plain, writing, reading, counted };

// Of a semaphore: how many permits there are, and how many a run takes.
struct slots {
    std::size_t limit = 0;
    std::size_t take = 1;
};

class run_lock {
public:
    // Throws holdfast::error if name or options cannot be.
    // What only one kind of lock has.
    struct extras {
        std::chrono::milliseconds delay{0};  // of a plain lock
        slots wanted = {};                   // of a semaphore
        std::string note = {};               // not of a semaphore
    };
    run_lock(const client& link, const std::string& name, side which, const shared_mutex_options& options,
             const extras& more);

    // Empty: not acquired in time. Throws holdfast::error; errc::cancelled when stopped.
    holdfast::lease acquire(patience limit, std::stop_token stop);

private:
    lockable& exclusive() { return plain_ ? static_cast<lockable&>(*plain_) : *shared_; }

    side side_;
    std::optional<mutex> plain_;
    std::optional<shared_mutex> shared_;
    slots wanted_;
    std::string note_;
    std::optional<semaphore> counted_;
};

struct waited {
    holdfast::lease hold;       // empty: not acquired in time
    std::optional<int> signal;  // asked to end; the hold is empty then
};

// Waits in the queue, and leaves it when a signal asks to end. `display` shows the wait at a terminal; may be null.
// Throws holdfast::error if the server cannot be asked.
waited wait_for_lock(run_lock& lock, patience limit, signal_inbox& signals, waiting_display* display);

// What to do about a key that is not of the wanted kind.
std::string advice_on_kind(const lock_state& found, side wanted);

}  // namespace holdfast::cli
