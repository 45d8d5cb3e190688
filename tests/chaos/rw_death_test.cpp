// A reader dies among many that renew: R28, R32, R46.
//
// The tests measure and print times. Assertions allow `under_load` more, for a busy machine; that is no part of the
// promise.
#include <gtest/gtest.h>
#include <signal.h>

#include <iostream>

#include "chaos/chaos_fixture.hpp"

namespace holdfast::testing::rw_death_test {
namespace {

constexpr std::int64_t ms = 1000;          // times are in microseconds here
constexpr std::int64_t lease = 5000 * ms;  // long enough for living readers to renew on a busy machine
constexpr std::int64_t under_load = 10000 * ms;
constexpr std::size_t readers = 20;

class DeathOfAReader : public chaos_fixture {
protected:
    worker start(std::size_t holders, const std::string& kind) {
        return worker{{"share-hold", server.url(), "dear", std::to_string(lease / ms), std::to_string(holders), kind}};
    }

    std::int64_t readers_counted() {
        const std::string count = server.call({"HGET", "hf:{dear}", "rcount"}).text;
        return count.empty() ? 0 : to_number(count);
    }

    /// The time of its death.
    std::int64_t kill(worker& victim) {
        victim.signal(SIGKILL);
        EXPECT_EQ(victim.process().wait(an_age).signal, SIGKILL);
        return now_us();
    }

    static std::int64_t time_of(const told_line& line) { return to_number(line.at(1)); }
};

TEST_F(DeathOfAReader, DelaysAWaitingWriterByAtMostTheRestOfItsLease) {
    worker others = start(readers - 1, "read");
    others.wait_for("held");
    worker victim = start(1, "read");
    victim.wait_for("held");
    EXPECT_EQ(readers_counted(), static_cast<std::int64_t>(readers));
    worker writer = start(1, "write");
    ASSERT_TRUE(queue_reaches("dear", 1));
    const auto died = kill(victim);
    EXPECT_EQ(others.finish(), went_well);
    const auto in = time_of(writer.wait_for("held"));
    std::cout << "the writer was in " << (in - died) / ms << " ms after the death, the lease being " << lease / ms
              << " ms\n";
    EXPECT_LT(in, died + lease + under_load);
    EXPECT_EQ(writer.finish(), went_well);
}

// Renewals of other readers do not renew the dead one.
TEST_F(DeathOfAReader, EndsItsHoldWhileOtherReadersContinue) {
    worker others = start(readers - 1, "read");
    others.wait_for("held");
    worker victim = start(1, "read");
    victim.wait_for("held");
    const auto died = kill(victim);
    ASSERT_TRUE(eventually([&] { return readers_counted() == static_cast<std::int64_t>(readers) - 1; }, an_age));
    std::cout << "it no longer counted " << (now_us() - died) / ms << " ms after its death\n";
    worker writer = start(1, "write");
    ASSERT_TRUE(queue_reaches("dear", 1));
    ASSERT_TRUE(eventually([&] { return now_us() > died + 2 * lease; }, an_age));
    EXPECT_EQ(readers_counted(), static_cast<std::int64_t>(readers) - 1) << "the living are renewed";
    EXPECT_FALSE(writer.has_told("held"));
    EXPECT_EQ(others.finish(), went_well);
    const auto left = time_of(others.wait_for("released"));
    const auto in = time_of(writer.wait_for("held"));
    std::cout << "the writer was in " << (in - left) / ms << " ms after the last reader had left\n";
    EXPECT_LT(in, left + under_load);
    EXPECT_EQ(writer.finish(), went_well);
}

// R29: its queue entry ends with its process, although it would have waited for ever.
TEST_F(DeathOfAReader, OrOfAWaitingWriterDelaysNobody) {
    worker others = start(1, "read");
    others.wait_for("held");
    worker writer = start(1, "write");
    ASSERT_TRUE(queue_reaches("dear", 1));
    worker behind = start(3, "read");
    ASSERT_TRUE(queue_reaches("dear", 4));
    const auto died = kill(writer);
    const auto in = time_of(behind.wait_for("held"));
    std::cout << "the readers behind it were in " << (in - died) / ms << " ms after the death\n";
    EXPECT_LT(in, died + lease + under_load) << "two of their polls, at the latest";
    EXPECT_EQ(behind.finish(), went_well);
    EXPECT_EQ(others.finish(), went_well);
}

}  // namespace
}  // namespace holdfast::testing::rw_death_test
