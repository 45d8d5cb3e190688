// The thread on which user code runs that nobody is waiting for: callbacks of lost(), hooks.
//
// Never the thread that drives the loop: a callback may block, or call back into the library, and must not
// stop others' requests meanwhile. Started with the first notification; runs them one after the other, in order.
// Between two of them it may drive the loop itself, so that nobody needs to be woken: see loop::stand_in().
#pragma once

#include "api/runtime/loop.hpp"

#include <holdfast/detail/callback.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::api {

// One that is run even if the notifier is stopped before its turn: a line of the log.
class last_word : public detail::callback {};

template <typename Function>
class last_word_of final : public last_word {
public:
    explicit last_word_of(Function function) : function_(std::move(function)) {}
    void run(std::unique_ptr<detail::callback>) override { std::move(function_)(); }

private:
    Function function_;
};

class notifier {
public:
    explicit notifier(loop& where);
    ~notifier() { stop(); }
    notifier(const notifier&) = delete;
    notifier& operator=(const notifier&) = delete;

    void notify(std::unique_ptr<detail::callback> work);
    template <typename Function>
    void notify(Function function) {
        notify(std::unique_ptr<detail::callback>(new detail::callback_of<Function>(std::move(function))));
    }

    // The same, of a line of the log.
    template <typename Function>
    void tell(Function function) {
        notify(std::unique_ptr<detail::callback>(new last_word_of<Function>(std::move(function))));
    }

    // Of a callback: others wait behind it, and what it asks for may go out with what they will ask for.
    enum class outlook { no_callback, more_to_come, nothing_more };
    static outlook what_follows() noexcept { return what_follows_; }

    // Before the loop is stopped. What has not been run yet is dropped, but for the lines of the log. Waits for the
    // notification under way, unless that is what stops us: then nothing is run any more.
    void stop();

private:
    // Shared with the thread, which may outlive the notifier if a callback destroys it.
    using batch = std::vector<std::unique_ptr<detail::callback>>;
    struct queue {
        explicit queue(loop& loop) : where(loop) {}

        loop& where;  // gone once we are stopping
        std::mutex mutex;
        batch waiting;
        loop::wait* sleeps = nullptr;        // what the thread waits for, while it does
        std::atomic<bool> stopping = false;  // written under the mutex
        bool stopped_by_callback = false;
    };
    static void wake(queue& work);
    static void run(const std::shared_ptr<queue>& work);
    static void run_all(batch& callbacks, const queue& work);
    static void run_last_words(batch& left);

    static inline thread_local outlook what_follows_ = outlook::no_callback;

    std::shared_ptr<queue> queue_;
    std::thread thread_;  // guarded by queue_->mutex until the destructor
};

}  // namespace holdfast::api
