// The callback thread may be told to lead and find, once it is awake, that it is no longer for it: the lead is not
// lost.
//
// What decides is how late it wakes. So it is held fast: a signal stops it in its handler, wherever it is.
#include "api/runtime/loop.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <boost/asio/post.hpp>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include "support/eventually.hpp"

namespace holdfast::api::loop_stand_in_test {
namespace {

using namespace std::chrono_literals;
using holdfast::testing::eventually;

std::atomic<bool> hold_fast = false;
std::atomic<bool> is_held = false;

void stay(int) {
    is_held = true;
    while (hold_fast) ::poll(nullptr, 0, 1);
    is_held = false;
}

class LoopStandIn : public ::testing::Test {
protected:
    LoopStandIn() {
        struct sigaction action {};
        action.sa_handler = stay;
        ::sigaction(SIGUSR1, &action, &before_);
        callbacks_ = std::thread([this] { subject_.stand_in(work_); });
        subject_.expect_in_background();
    }
    ~LoopStandIn() override {
        hold_fast = false;
        subject_.end(work_);
        callbacks_.join();
        ::sigaction(SIGUSR1, &before_, nullptr);
    }

    // Leads in this thread until `handler` has run in it. Whoever led before hands over when this thread comes.
    template <typename Handler>
    void lead_until_run(Handler handler) {
        loop::wait event;
        const std::function<void()> here = [&, caller = std::this_thread::get_id()] {
            if (std::this_thread::get_id() != caller) return boost::asio::post(subject_.context(), here);
            handler();
            subject_.end(event);
        };
        boost::asio::post(subject_.context(), here);
        subject_.until(event);
    }

    // Afterwards the callback thread has been told to lead and cannot wake. The background thread sleeps for good: one
    // thread has led for a long time.
    void tell_a_callback_thread_that_does_not_wake() {
        lead_until_run([&] {
            std::this_thread::sleep_for(100ms);
            hold_fast = true;
            ::pthread_kill(callbacks_.native_handle(), SIGUSR1);
            while (!is_held) std::this_thread::yield();  // ctest's limit ends it if it never comes
        });
    }
    void let_it_wake() {
        hold_fast = false;
        while (is_held) std::this_thread::yield();
    }

    loop subject_;
    loop::wait work_;

private:
    struct sigaction before_ {};
    std::thread callbacks_;
};

TEST_F(LoopStandIn, ThatDeclinesPassesTheLeadToThoseWhoFollow) {
    tell_a_callback_thread_that_does_not_wake();
    std::array<loop::wait, 4> events;
    std::vector<std::thread> callers;
    std::atomic<int> served = 0;
    lead_until_run([&] {
        for (loop::wait& each : events) {
            callers.emplace_back([&] {
                subject_.until(each);
                ++served;
            });
        }
        while (!subject_.has_company()) std::this_thread::yield();
    });
    let_it_wake();
    for (loop::wait& each : events) boost::asio::post(subject_.context(), [&] { subject_.end(each); });
    const bool all_served = eventually([&] { return served == 4; });
    EXPECT_TRUE(all_served);
    if (!all_served) lead_until_run([] {});  // or they could not be joined
    for (std::thread& each : callers) each.join();
    subject_.expected_has_come();
}

TEST_F(LoopStandIn, ThatFindsNothingExpectedWakesTheBackgroundThread) {
    tell_a_callback_thread_that_does_not_wake();
    lead_until_run([&] { subject_.expected_has_come(); });
    let_it_wake();
    std::atomic<bool> ran = false;
    boost::asio::post(subject_.context(), [&] { ran = true; });
    EXPECT_TRUE(eventually([&] { return ran.load(); }));
    lead_until_run([] {});  // what was posted looks at `ran`
}

}  // namespace
}  // namespace holdfast::api::loop_stand_in_test
