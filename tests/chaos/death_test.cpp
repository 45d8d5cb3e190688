// Processes that die, hang or hold a lock for long: R13, R43, R44, R45, R46.
//
// The tests measure and print times. Assertions allow `under_load` more, for a busy machine; that is no part of the
// promise.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <iostream>

#include "chaos/chaos_fixture.hpp"

namespace holdfast::testing::death_test {
namespace {

constexpr std::int64_t ms = 1000;  // times are in microseconds here
constexpr std::int64_t found_out_after = 250 * ms;
constexpr std::int64_t under_load = 4000 * ms;

class Deaths : public chaos_fixture {
protected:
    worker start(const std::string& lease_ms) { return worker{{"hold", server.url(), "dear", lease_ms}}; }

    worker start_waiter(const std::string& lease_ms, std::size_t position) {
        worker started = start(lease_ms);
        EXPECT_TRUE(queue_reaches("dear", position));
        return started;
    }

    void kill(worker& victim) {
        victim.signal(SIGKILL);
        EXPECT_EQ(victim.process().wait(an_age).signal, SIGKILL);
    }

    struct span {
        std::int64_t begin;
        std::int64_t end;
    };
    /// Lower and upper bound for the end of the holder's lease on the server without renewal.
    span lease_end() {
        const auto before = now_us();
        const auto left = server.call({"PTTL", "hf:{dear}"}).integer * ms;
        return {before + left, now_us() + left};
    }
};

std::int64_t time_of(const told_line& line) {
    return to_number(line.at(1));
}

std::int64_t token_of(const told_line& line) {
    return to_number(line.at(2));
}

// R46
TEST_F(Deaths, OfTheHolderDelayTheNextWaiterByAtMostTheRestOfTheLease) {
    worker holder = start("5000");
    const auto first = holder.wait_for("held");
    worker next = start_waiter("5000", 1);
    kill(holder);
    const span over = lease_end();
    const auto second = next.wait_for("held");
    std::cout << "had it " << (time_of(second) - over.end) / ms << " ms after the lease's end\n";
    EXPECT_GT(time_of(second), over.begin - 50 * ms) << "the lease was not respected";
    EXPECT_LE(time_of(second), over.end + found_out_after + under_load);
    EXPECT_GT(token_of(second), token_of(first));
    EXPECT_EQ(next.finish(), went_well);
}

// R13: the leases are so long that waiting for one would show.
TEST_F(Deaths, OfTheFirstWaiterDoNotDelayTheSecond) {
    worker holder = start("30000");
    holder.wait_for("held");
    worker first = start_waiter("30000", 1);
    worker second = start_waiter("30000", 2);
    kill(first);
    holder.process().close_input();
    const auto released = time_of(holder.wait_for("released"));
    const auto had = time_of(second.wait_for("held"));
    std::cout << "had it " << (had - released) / ms << " ms after the release\n";
    EXPECT_LE(had, released + under_load);
    EXPECT_EQ(second.finish(), went_well);
    EXPECT_EQ(holder.finish(), went_well);
}

// R13: the waiter is subscribed but has not polled for two intervals. It resumes, and is served.
TEST_F(Deaths, AHungWaiterIsSkippedAndServedWhenItResumes) {
    worker holder = start("6000");
    holder.wait_for("held");
    worker first = start_waiter("6000", 1);
    worker second = start_waiter("6000", 2);
    first.signal(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds{5000});
    EXPECT_EQ(holder.finish(), went_well);
    const auto had = time_of(second.wait_for("held"));
    EXPECT_LE(had, time_of(holder.wait_for("released")) + under_load);
    EXPECT_FALSE(first.has_told("held"));
    first.signal(SIGCONT);
    EXPECT_EQ(second.finish(), went_well);
    EXPECT_GT(time_of(first.wait_for("held")), time_of(second.wait_for("released")));
    EXPECT_EQ(first.finish(), went_well);
}

// R44, R45
TEST_F(Deaths, AStoppedHolderLearnsOfItsLossBeforeItBelievesAgain) {
    worker holder = start("3000");
    const auto first = holder.wait_for("held");
    worker next = start_waiter("3000", 1);
    holder.signal(SIGSTOP);
    const auto second = next.wait_for("held");
    EXPECT_FALSE(holder.has_told("lost")) << "it was to be stopped";
    holder.signal(SIGCONT);
    const auto lost = holder.wait_for("lost");
    EXPECT_GT(time_of(lost), time_of(second)) << "it learnt of it only when it went on";
    EXPECT_EQ(holder.finish(), went_well);
    for (const told_line& line : holder.lines("believes")) EXPECT_LT(time_of(line), time_of(second));
    EXPECT_NE(holder.wait_for("outcome").at(1), "well");
    EXPECT_LT(token_of(first), token_of(second));
    EXPECT_FALSE(next.has_told("lost")) << "the former holder harmed the next one";
    EXPECT_EQ(next.finish(), went_well);
}

// R43
TEST_F(Deaths, AShortLeaseThatIsRenewedIsNotLost) {
    worker holder = start("3000");
    const auto held = holder.wait_for("held");
    worker next = start_waiter("3000", 1);
    ASSERT_TRUE(eventually([&] { return now_us() > time_of(held) + 5000 * ms; }));
    EXPECT_FALSE(next.has_told("held"));
    EXPECT_FALSE(holder.has_told("lost"));
    EXPECT_EQ(holder.finish(), went_well);
    EXPECT_GT(time_of(next.wait_for("held")), time_of(holder.wait_for("released")));
    EXPECT_EQ(holder.wait_for("outcome").at(1), "well");
    EXPECT_EQ(next.finish(), went_well);
}

}  // namespace
}  // namespace holdfast::testing::death_test
