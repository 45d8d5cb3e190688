#include "api/runtime/notifier.hpp"

#include "base/signals_blocked.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::api {
namespace {

// How many callbacks run before their requests are sent. The server starts on them while further callbacks run, and
// would not read more at once.
constexpr std::size_t together = 32;

}  // namespace

notifier::notifier(loop& where) : queue_(std::make_shared<queue>(where)) {}

void notifier::stop() {
    {
        const std::lock_guard lock(queue_->mutex);
        const bool is_first = !queue_->stopping.exchange(true);
        if (is_first) queue_->stopped_by_callback = thread_.get_id() == std::this_thread::get_id();
        wake(*queue_);
    }
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();
    } else {
        thread_.join();
    }
}

void notifier::notify(std::unique_ptr<detail::callback> work) {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->stopping) return;
    queue_->waiting.push_back(std::move(work));
    wake(*queue_);
    if (thread_.joinable()) return;
    const signals_blocked for_the_new_thread;
    thread_ = std::thread([all = queue_] { run(all); });
}

// The caller holds the queue's mutex.
void notifier::wake(queue& work) {
    if (work.sleeps != nullptr) work.where.end(*std::exchange(work.sleeps, nullptr));
}

void notifier::run(const std::shared_ptr<queue>& work) {
    batch callbacks;
    for (;;) {
        loop::wait something_to_do;
        {
            const std::lock_guard lock(work->mutex);
            if (work->stopping) {
                if (work->stopped_by_callback) return;
                std::move(work->waiting.begin(), work->waiting.end(), std::back_inserter(callbacks));
                work->waiting.clear();
                break;
            }
            callbacks.clear();
            callbacks.swap(work->waiting);
            if (callbacks.empty()) work->sleeps = &something_to_do;
        }
        if (callbacks.empty()) work->where.stand_in(something_to_do);
        run_all(callbacks, *work);
    }
    run_last_words(callbacks);
}

// After stop(): runs the lines of the log among the callbacks that have not run.
void notifier::run_last_words(batch& left) {
    for (std::unique_ptr<detail::callback>& each : left) {
        if (dynamic_cast<last_word*>(each.get()) == nullptr) continue;
        detail::callback& present = *each;
        present.run(std::move(each));
    }
}

void notifier::run_all(batch& callbacks, const queue& work) {
    std::size_t left = callbacks.size();
    for (std::unique_ptr<detail::callback>& next : callbacks) {
        if (work.stopping) return;
        --left;
        what_follows_ = left % together == 0 ? outlook::nothing_more : outlook::more_to_come;
        detail::callback& present = *next;
        present.run(std::move(next));
    }
    what_follows_ = outlook::no_callback;
}

}  // namespace holdfast::api
