// The callback thread: order, what it says of the callbacks that follow, and how it takes its turn at the loop.
#include "api/runtime/notifier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace holdfast::api::notifier_test {
namespace {

class Notifier : public ::testing::Test {
protected:
    // Makes what is notified from now on wait for each other.
    void hold_up() {
        subject.notify([this] { go_on.get_future().wait(); });
    }
    void let_go() { go_on.set_value(); }
    // Returns when everything notified so far has been run.
    void finish() {
        std::promise<void> done;
        subject.notify([&] { done.set_value(); });
        done.get_future().wait();
    }
    std::thread::id callback_thread() {
        std::promise<std::thread::id> runs_on;
        subject.notify([&] { runs_on.set_value(std::this_thread::get_id()); });
        return runs_on.get_future().get();
    }
    std::thread::id thread_that_drives() {
        std::promise<std::thread::id> ran_on;
        boost::asio::post(where.context(), [&] { ran_on.set_value(std::this_thread::get_id()); });
        return ran_on.get_future().get();
    }

    std::promise<void> go_on;
    loop where;
    notifier subject{where};
};

TEST_F(Notifier, RunsCallbacksInOrder) {
    std::vector<int> ran;
    for (int i = 0; i < 1000; ++i) subject.notify([&ran, i] { ran.push_back(i); });
    finish();
    ASSERT_EQ(ran.size(), 1000U);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(ran[static_cast<std::size_t>(i)], i);
}

TEST_F(Notifier, TellsACallbackWhetherOthersFollow) {
    EXPECT_EQ(notifier::what_follows(), notifier::outlook::no_callback);
    constexpr std::size_t count = 100;
    std::vector<notifier::outlook> told;
    hold_up();
    for (std::size_t i = 0; i < count; ++i) subject.notify([&] { told.push_back(notifier::what_follows()); });
    let_go();
    finish();
    ASSERT_EQ(told.size(), count);
    // Now and then one is told to send what has come together; in between all wait for it.
    const auto sent = std::count(told.begin(), told.end(), notifier::outlook::nothing_more);
    EXPECT_GE(sent, 3);
    EXPECT_LE(sent, 5);
    EXPECT_EQ(std::count(told.begin(), told.end(), notifier::outlook::no_callback), 0);
}

TEST_F(Notifier, DropsWhatComesAfterItStopped) {
    subject.notify([] {});
    subject.stop();
    bool ran = false;
    subject.notify([&] { ran = true; });
    subject.stop();
    EXPECT_FALSE(ran);
}

TEST_F(Notifier, LinesOfTheLogAreHeardThoughItStopsBeforeTheirTurn) {
    hold_up();
    std::vector<int> heard;
    bool ran = false;
    subject.tell([&] { heard.push_back(1); });
    subject.notify([&] { ran = true; });
    subject.tell([&] { heard.push_back(2); });
    std::thread stopping([this] { subject.stop(); });
    // Once it is stopping, what comes is dropped at once.
    const auto is_dropped = [this] {
        const auto probe = std::make_shared<int>();
        subject.notify([probe] {});
        return probe.use_count() == 1;
    };
    while (!is_dropped()) std::this_thread::yield();
    let_go();
    stopping.join();
    EXPECT_EQ(heard, (std::vector<int>{1, 2}));
    EXPECT_FALSE(ran);
}

TEST_F(Notifier, StopsWhileItDrivesTheLoop) {
    where.expect_in_background();
    const std::thread::id expected = callback_thread();
    while (thread_that_drives() != expected) std::this_thread::yield();
    subject.stop();
    where.expected_has_come();
}

TEST(NotifierItself, MayBeDestroyedByACallback) {
    loop where;
    auto subject = std::make_unique<notifier>(where);
    const auto gone = std::make_shared<std::promise<void>>();
    auto done = gone->get_future();
    subject->notify([&subject, gone] {
        subject.reset();
        gone->set_value();
    });
    done.wait();
}

// What the log refers to may be gone with the client.
TEST(NotifierItself, SaysNothingAfterACallbackHasDestroyedIt) {
    loop where;
    auto subject = std::make_unique<notifier>(where);
    std::promise<void> go_on;
    const auto heard = std::make_shared<std::atomic<bool>>(false);
    subject->notify([&] {
        go_on.get_future().wait();
        subject.reset();
    });
    subject->tell([heard] { *heard = true; });
    go_on.set_value();
    while (heard.use_count() > 1) std::this_thread::yield();  // ctest's limit ends it if it is never dropped
    EXPECT_FALSE(*heard);
}

TEST_F(Notifier, DrivesTheLoopBetweenCallbacksWhileSomethingIsExpected) {
    where.expect_in_background();
    const std::thread::id expected = callback_thread();
    while (thread_that_drives() != expected) std::this_thread::yield();  // ctest's limit ends it if it never does
    where.expected_has_come();
}

TEST_F(Notifier, LeavesTheLoopToTheBackgroundThreadWhileACallbackBlocks) {
    where.expect_in_background();
    const std::thread::id mine = callback_thread();
    while (thread_that_drives() != mine) std::this_thread::yield();
    hold_up();
    while (thread_that_drives() == mine) std::this_thread::yield();
    let_go();
    where.expected_has_come();
}

TEST_F(Notifier, GivesTheLoopToACallerThatWaits) {
    where.expect_in_background();
    const std::thread::id mine = callback_thread();
    while (thread_that_drives() != mine) std::this_thread::yield();
    std::thread::id ran_on;
    while (ran_on != std::this_thread::get_id()) {
        loop::wait event;
        boost::asio::post(where.context(), [&] {
            ran_on = std::this_thread::get_id();
            where.end(event);
        });
        where.until(event);
    }
    where.expected_has_come();
}

// Callers, callbacks and expectations come and go; a wake-up or a lead that gets lost hangs the test.
TEST_F(Notifier, NoWakeUpIsLostUnderStress) {
    constexpr int rounds = 2000;
    std::latch all_back(rounds);
    const auto one_more = [&] {
        where.expect_in_background();
        boost::asio::post(where.context(), [&] {
            where.expected_has_come();
            subject.notify([&] { all_back.count_down(); });
        });
    };
    std::vector<std::thread> callers;
    for (int t = 0; t < 3; ++t) {
        callers.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                loop::wait event;
                boost::asio::post(where.context(), [&] { where.end(event); });
                where.until(event);
            }
        });
    }
    for (int i = 0; i < rounds; ++i) {
        one_more();
        if (i % 64 == 0) std::this_thread::yield();
    }
    for (std::thread& each : callers) each.join();
    all_back.wait();
}

// Each callback starts the next: the callback thread leads, leaves for the callback and comes back.
TEST_F(Notifier, AChainOfCallbacksGoesOnByItself) {
    std::promise<void> done;
    std::atomic<int> left = 3000;
    std::function<void()> step = [&] {
        if (--left == 0) return done.set_value();
        where.expect_in_background();
        boost::asio::post(where.context(), [&] {
            where.expected_has_come();
            subject.notify(step);
        });
    };
    subject.notify(step);
    done.get_future().wait();
}

}  // namespace
}  // namespace holdfast::api::notifier_test
