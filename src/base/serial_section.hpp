// Mutual exclusion in which nobody waits to get in.
//
// A client's engine and connections may be touched by one thread at a time. A mutex would do, but while its
// holder is in a system call (sending, say) everybody else would sleep, wake and send their own few bytes one
// after the other. Here a thread that finds the section occupied leaves its task behind and goes on; the
// occupant runs it before it leaves. So whatever is asked for during a send goes out together in the next one.
//
// Tasks are intrusive and not copied: one must stay alive until its run() was entered, and may be entered
// again afterwards.
//
// Invariants:
//  (1) At most one thread is inside; a task runs exactly once per enter().
//  (2) Tasks run in the order they were entered or left.
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

    // Runs the task inside the section: now, on this thread, if the section is free; else soon, on the occupant's.
    void enter(serial_task& task);

    // Leaves the task to whoever is inside or comes next. True if that may be nobody: then somebody has to be sent in.
    // For one who has more tasks to come soon, and would rather see them done together.
    [[nodiscard]] bool leave(serial_task& task);

    // Runs what was left, unless somebody is inside, who will.
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
    // What to do before leaving, e.g. send what the tasks have queued. May be called several times in one stay.
    virtual void settle() = 0;

    bool occupy();
    void line_up(serial_task& task);  // with mutex_ held
    void work();
    void work_and_leave();
    serial_task* take_all();
    bool leave_if_idle();

    static inline thread_local unsigned depth_ = 0;

    std::mutex mutex_;  // guards the three below, and is never held while a task or settle() runs
    bool occupied_ = false;
    serial_task* first_ = nullptr;
    serial_task* last_ = nullptr;
};

}  // namespace holdfast
