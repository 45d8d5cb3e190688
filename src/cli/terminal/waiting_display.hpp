// What a person at a terminal sees of a long wait: who holds the lock, for how long, and the place in line.
//
//     holdfast: 'a' is held by alice@web-1 backup[4242] for 2m3s, 28s of its lease left; waiting 12s, place 2 of 5
//
// One line, drawn again and again in its place and gone when the wait is over. To look
// disturbs nobody in line. Nothing is shown in the first second, in a pipe, or by a job in the background.
#pragma once

#include "cli/inspect/lock_state.hpp"
#include "cli/inspect/server_set.hpp"
#include "engine/engine.hpp"

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
    waiting_display(const waiting_display&) = delete;
    waiting_display& operator=(const waiting_display&) = delete;

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
    std::mutex mutex_;  // guards the terminal's line: drawn_ is true while something stands there
    std::condition_variable_any wake_;
    bool drawn_ = false;
    std::jthread thread_;
};

// The text of that line; `self` is who waits, as it calls itself.
std::string describe_wait(const lock_state& lock, const client_facts& self, milliseconds waited);

// What is waited for where too few servers vote yet: "servers a, b, c started 8s ago and vote in 52s (--max-lease)", or
// "3 servers started ..." where there is no room for names.
enum class naming { by_name, counted };
std::string describe_recovery(const engine::recovery& found, milliseconds max_lease, naming how);

}  // namespace holdfast::cli
