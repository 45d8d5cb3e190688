// The status line of a long wait at a terminal: who holds the lock, for how long, and the position in the queue.
//
//     holdfast: 'a' is held by alice@web-1 backup[4242] for 2m3s, 28s of its lease left; waiting 12s, position 2 of 5
//
// The line is redrawn in place and removed when the wait ends. Reading the lock does not affect the queue. Nothing is
// shown in the first second, in a pipe, or by a background job.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace holdfast::cli {

class waiting_display {
public:
    // `waiter` is the client that waits, with its longest lease; it must outlive this.
    waiting_display(server_set servers, lock_ref lock, const client& waiter, milliseconds max_lease);
    ~waiting_display();

    // Leaves the terminal's line empty, until it is drawn again.
    void clear() noexcept;

private:
    void show(const std::stop_token& over);
    std::string text();
    void draw(const std::string& text);

    server_set servers_;  // of the thread
    lock_ref lock_;
    const client& waiter_;
    const milliseconds max_lease_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    std::mutex mutex_;  // guards the terminal's line: drawn_ is true while it shows text
    std::condition_variable_any wake_;
    bool drawn_ = false;
    std::jthread thread_;
};

// The text of that line; `self` is who waits, as it calls itself.
std::string describe_wait(const lock_state& lock, const client_facts& self, milliseconds waited);

}  // namespace holdfast::cli
