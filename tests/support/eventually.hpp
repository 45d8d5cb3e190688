// Waits for an effect of another process or thread. A test never sleeps for a guessed time: it names the condition and
// a limit so generous that only a real failure reaches it.
#pragma once

#include <chrono>
#include <thread>

namespace holdfast::testing {

/// Polls until `predicate()` holds or `limit` is over; returns whether it held.
template <typename Predicate>
[[nodiscard]] bool eventually(Predicate&& predicate, std::chrono::milliseconds limit = std::chrono::seconds{10}) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!predicate()) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    return true;
}

}  // namespace holdfast::testing
