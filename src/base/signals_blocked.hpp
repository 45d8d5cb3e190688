// Keeps signals away from the library's threads: signal handlers of the application run on its own threads.
#pragma once

#include <pthread.h>
#include <csignal>

namespace holdfast {

// While the object lives no signal is delivered to this thread. Threads that it starts inherit that for good.
class signals_blocked {
public:
    signals_blocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;

private:
    sigset_t before_{};
};

}  // namespace holdfast
