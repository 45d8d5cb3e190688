// One io_context, and the thread that drives it: leader and followers.
//
// Waking another thread costs more than a round trip on loopback. So a caller that waits for an answer drives the loop
// itself until its answer arrives: it leads. Callers that come meanwhile sleep: they follow. The leader passes the lead
// to one of them when it is done. Two threads of the library lead only when no caller does and something is expected:
// answers for asynchronous callers, pushes, timers, reconnects. The background thread steps in with a delay (`linger`)
// after the last caller, so that a thread that acquires and releases again and again pays for no wake-ups in between.
// The callback thread stands in for the background thread between callbacks: it reads the answers, runs their handlers
// and sends what these ask for, without waking a second thread. Measured by contestant_holdfast of
// bench/, face=async, with and without it: 1 caller takes 16 instead of 50 us of processor time per cycle, 8
// callers 3.9 instead of 6.3 us, and 64 callers (`./dev bench parallel.async`) do 2 to 6 % more cycles.
//
// Who leads:
//
//   leader_              leader_gives_way_  thread             leads until               next leader
//   null                 -                  none, or an heir   a thread needs to lead
//   a wait of until()    false              a caller           its wait is over          pass_the_lead()
//   a wait of stand_in() true               callback thread    callbacks are to run, or  none, or
//                                                              step_aside_               pass_the_lead()
//   &background_         true               background thread  stop(), or step_aside_    none, or pass_the_lead()
//   a wait of glance()   true               a caller           nothing is ready          pass_the_lead()
//
// pass_the_lead() chooses, in this order: the first follower; the callback thread, if something is expected and it
// sleeps in stand_in(); the background thread, if something is expected, after listen(true), or if it sleeps without a
// timeout. A caller that meets a leader with leader_gives_way_ sets step_aside_.
//
// States of a wait: open; told_to_lead (it is the heir_, back to open once its thread is awake); over (final).
//
// A caller that leads alone looks for its answer for a moment before it sleeps: see spin_policy.hpp. A follower whose
// answer has arrived goes on without the mutex: with many callers it would be their bottleneck.
//
// The loop does not exclude anything: the serial section does. Handlers run on the leader's thread, enter the section,
// and may end a wait there. User code never runs on the leader's thread.
//
// Invariants (all under mutex_):
//  (1) At most one thread is in run_one(): the leader.
//  (2) If somebody follows, there is a leader or an heir. An heir leads, finds another leader, or passes the lead on;
//      until then nobody else looks for a leader.
//  (3) A wait is in followers_ only while it is open. The thread that changes its state takes it out.
//  (4) Only its own thread touches a wait that is over. That thread may see the state without mutex_.
#pragma once

#include "api/runtime/spin_policy.hpp"
#include "base/clock.hpp"
#include "base/futex.hpp"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
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

    explicit loop(std::optional<std::chrono::microseconds> spin = {});
    ~loop();
    loop(const loop&) = delete;
    loop& operator=(const loop&) = delete;

    boost::asio::io_context& context() noexcept { return context_; }

    // Ends and joins the background thread. No thread may wait any more.
    void stop();

    // Returns when end() was called for `event`. Drives the loop meanwhile if no other thread does.
    void until(wait& event);
    // Any thread may call it, any number of times before until() returns; afterwards never.
    void end(wait& event);

    // until() for the callback thread; end() means that there are callbacks to run. It leads in place of the background
    // thread while something is expected. If callbacks take long, the background thread leads meanwhile.
    void stand_in(wait& event);

    // Runs the handlers that are ready, if no other thread leads: for a caller that leaves an unfinished write behind.
    void glance();

    // Several callers wait already: a new request should be sent together with theirs.
    bool has_company() const noexcept;

    // True on a thread that drives any loop now.
    static bool driven_by_this_thread() noexcept { return driving_; }

    // An asynchronous operation starts: a thread of the library must lead when no caller does, without lingering.
    // Returns true if many operations are in flight, or the last one started just now.
    bool expect_in_background();
    void expected_has_come() noexcept { --expected_; }
    // Messages may come that must be read at once: others ask for a lock that is kept. A thread of the library leads
    // whenever no caller does, without lingering. Costs callers a wake-up each time they leave the lead.
    void listen(bool is_wanted) noexcept { listens_.store(is_wanted, std::memory_order_relaxed); }
    // When the next timer is due. A lingering background thread does not sleep past it.
    void next_timer(instant when) noexcept { next_timer_.store(when, std::memory_order_relaxed); }

private:
    using lock = std::unique_lock<std::mutex>;

    void lead(wait& event, lock& held);
    void look_before_sleep(const wait& event);
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
    std::atomic<std::size_t> following_ = 0;  // size of followers_, readable without mutex_
    wait* leader_ = nullptr;                  // see the table
    bool leader_gives_way_ = false;           // see the table
    wait* stand_in_ = nullptr;                // the wait of the callback thread, while it sleeps
    bool away_ = false;                       // the callback thread runs callbacks and comes back
    wait* heir_ = nullptr;                    // told to lead and not awake yet
    std::thread::id leading_thread_;
    wait background_;  // the background thread, in leader_
    std::condition_variable wake_background_;
    std::atomic<bool> step_aside_ = false;  // a caller wants the lead
    bool callers_were_here_ = false;        // since the background thread last checked
    bool deep_sleep_ = false;               // the background thread sleeps without a timeout
    std::uint64_t leads_ = 0;               // how often a caller or the callback thread took the lead
    std::uint64_t leads_seen_ = 0;          // when the background thread last checked
    std::uint64_t absences_ = 0;            // how often the callback thread left to run callbacks
    std::uint64_t absences_seen_ = 0;
    spin_policy spin_;                    // the leader's
    std::atomic<unsigned> expected_ = 0;  // asynchronous operations in flight; grows under mutex_ while few
    std::atomic<bool> listens_ = false;   // see listen()
    std::atomic<bool> crowded_ = false;   // the last operation started while many were in flight
    instant last_expected_{};             // when an operation last started
    std::atomic<instant> next_timer_{never};
    std::thread thread_;
};

}  // namespace holdfast::api
