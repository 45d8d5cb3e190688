#include "api/notifier.hpp"

#include "base/signals_blocked.hpp"

#include <utility>

namespace holdfast::api {

notifier::notifier() : queue_(std::make_shared<queue>()) {}

notifier::~notifier() {
    {
        const std::lock_guard lock(queue_->mutex);
        queue_->stopping = true;
        queue_->wake.notify_one();
    }
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();
    } else {
        thread_.join();
    }
}

void notifier::notify(std::function<void()> callback) {
    const std::lock_guard lock(queue_->mutex);
    const bool sleeping = queue_->waiting.empty();  // else it was told to wake up before, or is awake
    queue_->waiting.push_back(std::move(callback));
    if (!thread_.joinable()) {
        const signals_blocked for_the_new_thread;
        thread_ = std::thread([work = queue_] { run(work); });
    }
    if (sleeping) queue_->wake.notify_one();
}

void notifier::run(const std::shared_ptr<queue>& work) {
    std::vector<std::function<void()>> batch;
    for (;;) {
        {
            std::unique_lock lock(work->mutex);
            work->wake.wait(lock, [&] { return work->stopping || !work->waiting.empty(); });
            if (work->stopping) return;
            batch.swap(work->waiting);
        }
        for (std::function<void()>& callback : batch) {
            if (work->stopping) return;
            callback();
            callback = nullptr;  // what it captured may end the client: not under the lock
        }
        batch.clear();
    }
}

}  // namespace holdfast::api
