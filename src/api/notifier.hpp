// The thread on which user code runs that nobody is waiting for: callbacks of lost(), hooks.
//
// Never the thread that drives the loop: a callback may block, or call back into the library, and must not
// stop others' requests meanwhile. Started with the first notification; runs them one after the other, in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::api {

class notifier {
public:
    notifier();
    // What has not been run yet is dropped. Waits for the notification under way, unless that is what destroys us.
    ~notifier();
    notifier(const notifier&) = delete;
    notifier& operator=(const notifier&) = delete;

    void notify(std::function<void()> callback);

private:
    // Shared with the thread, which may outlive the notifier if a callback destroys it.
    struct queue {
        std::mutex mutex;
        std::condition_variable wake;
        std::vector<std::function<void()>> waiting;
        std::atomic<bool> stopping = false;  // written under the mutex
    };
    static void run(const std::shared_ptr<queue>& work);

    std::shared_ptr<queue> queue_;
    std::thread thread_;  // guarded by queue_->mutex until the destructor
};

}  // namespace holdfast::api
