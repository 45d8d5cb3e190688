// The callback thread: it runs user code that no caller waits for, such as callbacks of lost(), handlers and the log.
//
// User code never runs on a thread while it drives the loop: a callback may block, or call the library, and must not
// delay other requests. The thread starts with the first notification and runs all notifications in order. Between two
// of them it may drive the loop itself, which saves waking another thread: see loop::stand_in().
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

// A callback that runs even if the notifier stops first: a line of the log.
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

    // The same for a line of the log.
    template <typename Function>
    void tell(Function function) {
        notify(std::unique_ptr<detail::callback>(new last_word_of<Function>(std::move(function))));
    }

    // What follows the callback that runs on this thread. If others follow, its requests are sent together with theirs.
    enum class outlook { no_callback, more_to_come, nothing_more };
    static outlook what_follows() noexcept { return what_follows_; }

    // Call it before the loop stops. Drops the callbacks that have not run, except lines of the log. Waits for the
    // running callback, unless that callback itself calls stop(): then no other callback runs.
    void stop();

private:
    // Shared with the thread, which outlives the notifier if a callback destroys it.
    using batch = std::vector<std::unique_ptr<detail::callback>>;
    struct queue {
        explicit queue(loop& loop) : where(loop) {}

        loop& where;  // do not use it once `stopping` is set
        std::mutex mutex;
        batch waiting;
        loop::wait* sleeps = nullptr;        // the wait of the thread, while it sleeps
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
