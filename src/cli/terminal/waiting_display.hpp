// The status line of a long wait at a terminal: who holds the lock, for how long, and the position in the queue.
//
//     holdfast: waiting 12s, position 2 of 5, for 'a'; held by alice@web-1 backup[4242] for 2m3s, 28s of its lease left
//
// What matters most comes first, and what does not fit into one line of the terminal begins a second one. The text is
// redrawn in place and removed when the wait ends. Reading the lock does not affect the queue. Nothing is
// shown in the first second, in a pipe, or by a background job.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::cli {

struct wait_text {
    std::string wait;    // how long, at which position, for what
    std::string reason;  // who holds the lock, or why the server cannot tell
    std::string between = "; ";
    std::string note = {};  // the holder's; takes the room that is left
};

class waiting_display {
public:
    // `waiter` is the client that waits, with its longest lease; it must outlive this.
    waiting_display(server_set servers, lock_ref lock, const client& waiter, milliseconds max_lease);
    ~waiting_display();

    // Leaves the terminal's line empty, until it is drawn again.
    void clear() noexcept;
    // The same for good. True: something was there, and with it what the terminal itself wrote for Ctrl-C.
    bool finish() noexcept;

private:
    void show(const std::stop_token& over);
    wait_text text();
    void erase() noexcept;
    void draw(const wait_text& text);

    server_set servers_;  // of the thread
    lock_ref lock_;
    const client& waiter_;
    const milliseconds max_lease_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    std::mutex mutex_;  // guards the terminal's lines
    std::condition_variable_any wake_;
    std::size_t drawn_ = 0;  // how many lines of the terminal show text
    std::jthread thread_;
};

// `self` is who waits, as it calls itself.
wait_text describe_wait(const lock_state& lock, const client_facts& self, milliseconds waited);
// In as few lines as possible, none of them longer.
std::vector<std::string> lines_of(const wait_text& text, std::size_t columns);

// Ends the line on which the terminal has written ^C, where nothing of ours was there. Not as a background job.
void end_line_of_interrupt() noexcept;

}  // namespace holdfast::cli
