// One io_context, and who drives it: lead and follow.
//
// Waking another thread costs more than a round trip on loopback. So a caller that must wait for an answer
// drives the loop itself until its answer is there (it leads); callers that come meanwhile sleep (they
// follow), and the leader passes the lead to one of them when it is done. A background thread leads only when
// nobody else does and something is to be expected: answers for asynchronous callers, pushes, timers,
// reconnects. It steps in with a delay (`linger`) after the last caller, so that a thread that takes and
// gives a lock again and again pays for no wake-ups in between. Where there are callbacks to run, the thread that runs
// them stands in for the background thread: see stand_in().
//
// A caller that leads alone looks closely for a moment before it sleeps: see loop.cpp. One whose answer has come while
// it followed goes on without the mutex: with many callers, that is what they would all be waiting for.
//
// The loop says nothing about exclusion: that is the serial section's part. Handlers run on the leader's
// thread, enter the section, and may end a wait there; user code never runs on it.
//
// Invariants (all under mutex_):
//  (1) At most one thread is in run_one(): the leader.
//  (2) If somebody follows, there is a leader, or an heir: one that has been told to lead and is waking up. An heir
//      leads, finds that somebody else does, or passes the lead on: nobody else looks for a leader meanwhile.
//  (3) A wait is in followers_ only while it is neither over nor told to lead; whoever changes that takes it out.
//  (4) A wait that is over is never touched again by anyone but its own thread. Its thread may see that without mutex_.
#pragma once

#include "base/clock.hpp"
#include "base/futex.hpp"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace holdfast::api {

class loop {
public:
    // One thread's wait for one event. Lives on the waiting thread's stack.
    class wait : public boost::intrusive::list_base_hook<> {
    public:
        wait() = default;
        wait(const wait&) = delete;
        wait& operator=(const wait&) = delete;

    private:
        friend class loop;
        enum state : std::uint32_t { open, told_to_lead, over };

        bool is_over() const noexcept { return state_.load(std::memory_order_acquire) == over; }
        void sleep() noexcept {
            while (state_.load(std::memory_order_acquire) == open) futex_wait(state_, open);
        }

        futex_word state_{open};  // changed under mutex_ only
    };

    loop();
    ~loop();
    loop(const loop&) = delete;
    loop& operator=(const loop&) = delete;

    boost::asio::io_context& context() noexcept { return context_; }

    // Ends and joins the background thread. Nobody may wait any more.
    void stop();

    // Returns when end() was called for it. Drives the loop meanwhile if nobody else does.
    void until(wait& event);
    // Any thread, any number of times before until() returns; afterwards never.
    void end(wait& event);

    // until() for the thread that runs callbacks, which end() calls to work. Instead of the background thread it leads
    // while something is expected: so the answers that make callbacks are read by the thread that runs them, and what
    // the callbacks ask for is sent by it when they are done. If they take long, the background thread does it.
    void stand_in(wait& event);

    // Does what can be done at once, if nobody else sees to that: for one who leaves something unfinished behind.
    void glance();

    // Several wait already: what is asked now had best go out together with what they ask.
    bool has_company() const noexcept;

    // True on a thread that drives any loop at this moment.
    static bool driven_by_this_thread() noexcept { return driving_; }

    // Somebody expects something without waiting for it in a thread: the background thread must lead when no
    // caller does, without lingering. True if it has company: much else is expected, or the last such call was just
    // now.
    bool expect_in_background();
    void expected_has_come() noexcept { --expected_; }
    // The earliest instant at which a timer is due: a lingering background thread does not sleep past it.
    void next_timer(instant when) noexcept { next_timer_.store(when, std::memory_order_relaxed); }

private:
    using lock = std::unique_lock<std::mutex>;

    void lead(wait& event, lock& held);
    void look_closely(const wait& event);
    void follow(wait& event, lock& held);
    void lead_until_asked(wait& as, lock& held);
    bool is_free() const;
    void no_longer_asleep(wait& event);
    bool take_up_told(wait& event);
    void ask_leader_to_step_aside();
    void pass_the_lead(lock& held);
    void tell_to_lead(wait& event, lock& held);
    void run_background();
    void linger(lock& held);
    std::chrono::nanoseconds until_next_timer() const;
    void interrupt_leader();

    template <typename Work>
    void drive(lock& held, Work work);

    static inline thread_local bool driving_ = false;

    boost::asio::io_context context_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    mutable std::mutex mutex_;
    boost::intrusive::list<wait> followers_;
    std::atomic<std::size_t> following_ = 0;  // how many; a copy that can be looked at without mutex_
    wait* leader_ = nullptr;                  // a caller's wait, the stand-in's, or &background_
    bool leader_gives_way_ = false;           // it is not a caller
    wait* stand_in_ = nullptr;                // the callback thread's, while that sleeps
    bool away_ = false;                       // the callback thread has left the lead for callbacks and comes back
    wait* heir_ = nullptr;                    // told to lead, and not awake yet
    std::thread::id leading_thread_;
    wait background_;  // stands for the background thread in leader_
    std::condition_variable wake_background_;
    std::atomic<bool> step_aside_ = false;  // a caller wants the lead that the background thread has
    bool callers_were_here_ = false;        // since the background thread last looked
    bool deep_sleep_ = false;               // the background thread sleeps until the present leader is done
    std::uint64_t leads_ = 0;               // how often a caller has taken the lead
    std::uint64_t leads_seen_ = 0;          // by the background thread when it last looked
    std::uint64_t absences_ = 0;            // how often the callback thread has left
    std::uint64_t absences_seen_ = 0;
    int not_again_for_ = 0;               // leads that do not look closely, after one that did in vain
    std::atomic<unsigned> expected_ = 0;  // while few, grows under mutex_ only: then somebody may have to be woken
    std::atomic<bool> crowded_ = false;   // the last one was added to many
    instant last_expected_{};             // when something was last added to that
    std::atomic<instant> next_timer_{never};
    std::thread thread_;
};

}  // namespace holdfast::api
