// Lead and follow: whoever waits gets its answer, whoever else comes and goes.
#include "api/runtime/loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <random>
#include <thread>
#include <vector>

#include "base/boot_clock.hpp"

namespace holdfast::api::loop_test {
namespace {

using namespace std::chrono_literals;

TEST(Loop, AWaitThatIsOverBeforehandReturnsAtOnce) {
    loop subject;
    loop::wait event;
    subject.end(event);
    subject.end(event);
    subject.until(event);
}

TEST(Loop, TheWaiterDrivesTheLoopItself) {
    loop subject;
    // The background thread may lead at first; it steps aside when a caller comes.
    std::thread::id ran_on;
    for (int i = 0; i < 1000 && ran_on != std::this_thread::get_id(); ++i) {
        loop::wait event;
        boost::asio::post(subject.context(), [&] {
            ran_on = std::this_thread::get_id();
            subject.end(event);
        });
        subject.until(event);
    }
    EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Loop, TheBackgroundThreadStepsInWhenNobodyWaits) {
    loop subject;
    std::atomic<bool> ran = false;
    boost::asio::post(subject.context(), [&] { ran = true; });
    while (!ran) std::this_thread::yield();  // ctest's limit ends it if it never comes
    subject.expect_in_background();
    ran = false;
    boost::asio::post(subject.context(), [&] { ran = true; });
    while (!ran) std::this_thread::yield();
    subject.expected_has_come();
}

TEST(Loop, AnotherThreadMayEndALeadersWait) {
    loop subject;
    for (int i = 0; i < 200; ++i) {
        loop::wait event;
        std::thread other([&] { subject.end(event); });
        subject.until(event);
        other.join();
    }
}

// Every wait is ended by a handler that runs on whoever leads at that time. A lost wake-up hangs the test.
TEST(Loop, NoWakeUpIsLostUnderStress) {
    loop subject;
    constexpr int threads = 8;
    constexpr int rounds = 1500;
    std::atomic<int> done = 0;
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int i = 0; i < rounds; ++i) {
                loop::wait event;
                boost::asio::post(subject.context(), [&] { subject.end(event); });
                if (random() % 8 == 0) std::this_thread::yield();
                subject.until(event);
                ++done;
            }
        });
    }
    for (std::thread& each : running) each.join();
    EXPECT_EQ(done, threads * rounds);
}

// The same with one slow waiter that must not keep the others from being served, nor they it.
TEST(Loop, AThreadThatWaitsLongServesTheOthersMeanwhile) {
    loop subject;
    loop::wait slow;
    std::thread waits_long([&] { subject.until(slow); });
    std::vector<std::thread> running;
    for (int t = 0; t < 4; ++t) {
        running.emplace_back([&] {
            for (int i = 0; i < 500; ++i) {
                loop::wait event;
                boost::asio::post(subject.context(), [&] { subject.end(event); });
                subject.until(event);
            }
        });
    }
    for (std::thread& each : running) each.join();
    boost::asio::post(subject.context(), [&] { subject.end(slow); });
    waits_long.join();
}

TEST(Loop, WaitsThatEndEachOtherInAChainAllEnd) {
    loop subject;
    constexpr std::size_t links = 16;
    for (int round = 0; round < 50; ++round) {
        std::vector<loop::wait> events(links);
        std::vector<std::thread> running;
        for (std::size_t i = 0; i + 1 < links; ++i) {
            running.emplace_back([&, i] {
                subject.until(events[i]);
                subject.end(events[i + 1]);
            });
        }
        boost::asio::post(subject.context(), [&] { subject.end(events[0]); });
        subject.until(events[links - 1]);
        for (std::thread& each : running) each.join();
    }
}

// The lead may have been offered to a follower whose wait is over before it wakes: it must not be lost with it.
TEST(Loop, TheLeadIsNotLostWithAFollowerWhoseWaitEnds) {
    loop subject;
    constexpr std::size_t threads = 8;
    for (int round = 0; round < 50; ++round) {
        std::vector<loop::wait> ended_by_hand(threads);
        std::vector<loop::wait> ended_by_the_loop(threads);
        std::vector<std::thread> running;
        for (std::size_t i = 0; i < threads; ++i) {
            running.emplace_back([&, i] {
                subject.until(ended_by_hand[i]);
                boost::asio::post(subject.context(), [&, i] { subject.end(ended_by_the_loop[i]); });
                subject.until(ended_by_the_loop[i]);
            });
        }
        for (loop::wait& each : ended_by_hand) subject.end(each);
        for (std::thread& each : running) each.join();
    }
}

TEST(Loop, ThoseWhoFollowAreCompany) {
    loop subject;
    EXPECT_FALSE(subject.has_company());
    std::vector<loop::wait> events(6);
    std::vector<std::thread> running;
    for (loop::wait& each : events) running.emplace_back([&] { subject.until(each); });
    while (!subject.has_company()) std::this_thread::yield();  // ctest's limit ends it if it never comes
    for (loop::wait& each : events) subject.end(each);
    for (std::thread& each : running) each.join();
    EXPECT_FALSE(subject.has_company());
}

TEST(Loop, StopsWhateverTheBackgroundThreadDoes) {
    for (int i = 0; i < 50; ++i) {
        loop subject;
        if (i % 2 == 0) std::this_thread::sleep_for(1ms);
        if (i % 3 == 0) subject.next_timer(boot_now() + 1ms);
        if (i % 5 == 0) subject.stop();
    }
}

}  // namespace
}  // namespace holdfast::api::loop_test
