// One inside at a time, in order, and nobody waits to get in.
#include "base/serial_section.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::serial_section_test {
namespace {

using ::testing::ElementsAre;

class section final : public serial_section {
public:
    explicit section(std::function<void()> settle) : settle_(std::move(settle)) {}

private:
    void settle() override { settle_(); }
    std::function<void()> settle_;
};

class task final : public serial_task {
public:
    explicit task(std::function<void()> what) : what_(std::move(what)) {}
    void run() override { what_(); }

private:
    std::function<void()> what_;
};

TEST(SerialSection, RunsATaskAtOnceWhenFreeAndSettlesBeforeItLeaves) {
    std::vector<std::string> log;
    section subject([&] { log.push_back("settle"); });
    task one([&] { log.push_back("one"); });
    subject.enter(one);
    subject.enter(one);
    EXPECT_THAT(log, ElementsAre("one", "settle", "one", "settle"));
}

TEST(SerialSection, WhatIsEnteredInsideRunsAfterwardsInOrderAndSettlesOnce) {
    std::vector<std::string> log;
    section subject([&] { log.push_back("settle"); });
    task b([&] { log.push_back("b"); });
    task a([&] {
        subject.enter(b);
        subject.enter_with([&] { log.push_back("c"); });
        log.push_back("a");
    });
    subject.enter(a);
    EXPECT_THAT(log, ElementsAre("a", "b", "c", "settle"));
}

TEST(SerialSection, WhatIsLeftRunsBeforeTheTaskOfTheNextWhoEntersAndIsSettledWithIt) {
    std::vector<std::string> log;
    section subject([&] { log.push_back("settle"); });
    task a([&] { log.push_back("a"); });
    task b([&] { log.push_back("b"); });
    task c([&] { log.push_back("c"); });
    EXPECT_TRUE(subject.leave(a)) << "nobody is inside";
    EXPECT_FALSE(subject.leave(b)) << "somebody is sent in for the first";
    EXPECT_THAT(log, ElementsAre());
    subject.enter(c);
    EXPECT_THAT(log, ElementsAre("a", "b", "c", "settle"));
    log.clear();
    EXPECT_TRUE(subject.leave(a));
    subject.enter_with([&] { log.push_back("d"); });
    EXPECT_THAT(log, ElementsAre("a", "d", "settle"));
}

TEST(SerialSection, WhatIsLeftWhileSomebodyIsInsideIsRunByThatOne) {
    std::vector<std::string> log;
    section subject([&] { log.push_back("settle"); });
    task b([&] { log.push_back("b"); });
    task a([&] {
        EXPECT_FALSE(subject.leave(b));
        log.push_back("a");
    });
    subject.enter(a);
    EXPECT_THAT(log, ElementsAre("a", "b", "settle"));
}

TEST(SerialSection, WhatSettlingEntersIsRunAndSettledToo) {
    std::vector<std::string> log;
    task late([&] { log.push_back("late"); });
    section* inside = nullptr;
    section subject([&] {
        log.push_back("settle");
        if (log.size() < 3) inside->enter(late);
    });
    inside = &subject;
    subject.enter_with([&] { log.push_back("a"); });
    EXPECT_THAT(log, ElementsAre("a", "settle", "late", "settle"));
}

TEST(SerialSection, ATaskMayEnterItselfAgain) {
    int runs = 0;
    section subject([] {});
    task* self = nullptr;
    task again([&] {
        if (++runs < 5) subject.enter(*self);
    });
    self = &again;
    subject.enter(again);
    EXPECT_EQ(runs, 5);
}

TEST(SerialSection, NobodyWaitsToGetIn) {
    section subject([] {});
    std::atomic<bool> inside = false;
    std::atomic<bool> may_leave = false;
    std::atomic<bool> ran = false;
    std::thread occupant([&] {
        subject.enter_with([&] {
            inside = true;
            while (!may_leave) std::this_thread::yield();
        });
    });
    while (!inside) std::this_thread::yield();
    task other([&] { ran = true; });
    subject.enter(other);  // returns although the section is occupied
    EXPECT_FALSE(ran);
    may_leave = true;
    occupant.join();
    EXPECT_TRUE(ran) << "the occupant ran it before it left";
}

TEST(SerialSection, ExcludesAndKeepsEveryThreadsOrderUnderStress) {
    constexpr int threads = 6;
    constexpr int rounds = 3000;
    int unguarded = 0;  // for tsan: only the section protects it
    int unsettled = 0;
    std::vector<int> last(threads, -1);
    bool in_order = true;
    section subject([&] { unsettled = 0; });
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
            for (int i = 0; i < rounds; ++i) {
                subject.enter_with([&, t, i] {
                    ++unguarded;
                    ++unsettled;
                    in_order = in_order && last[static_cast<std::size_t>(t)] == i - 1;
                    last[static_cast<std::size_t>(t)] = i;
                });
            }
        });
    }
    for (std::thread& each : running) each.join();
    EXPECT_EQ(unguarded, threads * rounds) << "each ran exactly once";
    EXPECT_TRUE(in_order);
    EXPECT_EQ(unsettled, 0) << "nobody left without settling";
}

}  // namespace
}  // namespace holdfast::serial_section_test
