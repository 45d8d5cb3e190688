// Keeps signals away from threads of the library: the application's handlers belong on the application's threads.
#pragma once

#include <pthread.h>
#include <csignal>

namespace holdfast {

// While it lives no signal is delivered to this thread, and threads it starts inherit that for good.
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
