#include "base/serial_section.hpp"

namespace holdfast {

void serial_section::enter(serial_task& task) {
    {
        const std::lock_guard lock(mutex_);
        enqueue(task);
        if (std::exchange(occupied_, true)) return;
    }
    ++depth_;
    work_and_leave();
}

bool serial_section::leave(serial_task& task) {
    const std::lock_guard lock(mutex_);
    const bool alone = !occupied_ && first_ == nullptr;
    enqueue(task);
    return alone;
}

void serial_section::run_what_was_left() {
    if (!occupy()) return;
    ++depth_;
    work_and_leave();
}

void serial_section::enqueue(serial_task& task) {
    task.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &task;
    last_ = &task;
}

bool serial_section::occupy() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(occupied_, true);
}

void serial_section::work() {
    for (serial_task* batch = take_all(); batch != nullptr; batch = take_all()) {
        while (batch != nullptr) {
            serial_task* const present = batch;
            batch = batch->next_;  // run() may free the task or queue it again
            present->run();
        }
    }
}

void serial_section::work_and_leave() {
    do {
        work();
        settle();
    } while (!leave_if_idle());
    --depth_;
}

serial_task* serial_section::take_all() {
    const std::lock_guard lock(mutex_);
    serial_task* const batch = first_;
    first_ = nullptr;
    last_ = nullptr;
    return batch;
}

bool serial_section::leave_if_idle() {
    const std::lock_guard lock(mutex_);
    if (first_ != nullptr) return false;
    occupied_ = false;
    return true;
}

}  // namespace holdfast
