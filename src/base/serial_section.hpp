// Mutual exclusion in which no thread waits to enter.
//
// One thread at a time may use a client's engine and connections. With a mutex, all other threads would sleep while its
// holder is in a system call such as send, then wake and send their few bytes one after the other. Here a thread that
// finds the section occupied queues its task and goes on. The occupant runs the task before it leaves. So all requests
// that are made during one send go out together in the next.
//
// Tasks are intrusive and not copied. A task must stay alive until its run() is entered. It may be entered again
// afterwards.
//
// Invariants:
//  (1) At most one thread is inside; a task runs exactly once per enter().
//  (2) Tasks run in the order in which they were queued.
//  (3) settle() runs after the last task and before the section is left, with no task waiting when it starts.
#pragma once

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace holdfast {

class serial_task {
public:
    virtual void run() = 0;

protected:
    ~serial_task() = default;

private:
    friend class serial_section;
    serial_task* next_ = nullptr;
};

class serial_section {
public:
    virtual ~serial_section() = default;

    // Runs the task inside the section: now, on this thread, if the section is free; otherwise soon, on the occupant's.
    void enter(serial_task& task);

    // Queues the task for the present or next occupant. True: there may be none, and a thread must call
    // run_what_was_left(). For callers that expect more tasks soon, and want them run together.
    [[nodiscard]] bool leave(serial_task& task);

    // Runs the queued tasks, unless an occupant does so.
    void run_what_was_left();

    // True on a thread that is inside this or any other section.
    static bool inside_any() noexcept { return depth_ > 0; }

    // The same for any function object; allocates only if the section is occupied.
    template <typename Function>
    void enter_with(Function&& function) {
        if (occupy()) {
            ++depth_;
            work();
            function();
            work_and_leave();
        } else {
            enter(*new owned_task<std::decay_t<Function>>(std::forward<Function>(function)));
        }
    }

protected:
    template <typename Function>
    class owned_task final : public serial_task {
    public:
        explicit owned_task(Function function) : function_(std::move(function)) {}
        void run() override {
            const std::unique_ptr<owned_task> owner(this);
            function_();
        }

    private:
        Function function_;
    };

private:
    // Called before the section is left, e.g. to send what the tasks have queued. Perhaps several times in one stay.
    virtual void settle() = 0;

    bool occupy();
    void enqueue(serial_task& task);  // with mutex_ held
    void work();
    void work_and_leave();
    serial_task* take_all();
    bool leave_if_idle();

    static inline thread_local unsigned depth_ = 0;

    std::mutex mutex_;  // guards the three members below; never held while a task or settle() runs
    bool occupied_ = false;
    serial_task* first_ = nullptr;
    serial_task* last_ = nullptr;
};

}  // namespace holdfast
