// Runs threads one at a time, and tries every order in which they can take their steps.
//
// A step is one operation that other threads can notice: on an atomic, a mutex, a condition variable, a futex, or the
// stand-in of Asio's queue. Before each the scheduler decides which thread goes on. One run of a world is a list of
// such decisions; the next run makes the last of them differently, until all have been tried (stateless exploration).
//
// A preemption takes the turn from a thread that could go on; a time-out that fires although some thread could go on
// counts as one, too. A run has a bounded number of them. A thread that has to wait gives up its turn for free.
//
// The operations take effect in one order that all threads see (sequential consistency): a weaker memory order that is
// too weak is not found here. ThreadSanitizer looks for that.
//
// Threads are stacks that one thread switches between (ucontext), because waking real ones would take most of the time.
// So thread_local variables are common to them. When something is broken the threads of that run stay where they are:
// they may be in functions that must not throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace interleaving {

struct limits {
    unsigned preemptions = 2;
    std::uint64_t most_runs = UINT64_MAX;
    std::size_t most_steps = 3000;  // of one run; more: it makes no progress
};

struct result {
    std::uint64_t runs = 0;
    std::uint64_t steps = 0;
    bool is_complete = false;
    std::string broken;  // empty: nothing was found
};

/// `world` runs as the first thread of every run. It must leave nothing behind, and decide nothing by time or chance.
result explore(const limits& within, const std::function<void()>& world);

// --- for the threads of a world
/// False outside explore(), where all operations simply happen.
bool is_exploring() noexcept;
/// Another thread may go first.
void step();
/// Goes on when that is so; another thread may go first.
void step_when(std::function<bool()> ready);
/// The same, or because time is over; returns whether it is ready.
bool step_when_or_late(std::function<bool()> ready);
int start(std::function<void()> body);
void join(int thread);
int this_thread() noexcept;
/// Something is broken. Does not return in a world.
void fail(const std::string& what);

inline void require(bool rule, const char* what) {
    if (!rule) fail(what);
}

}  // namespace interleaving
