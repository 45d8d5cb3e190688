#include "cli/bench/bench.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace holdfast::cli::latency_counts_test {
namespace {

using namespace std::chrono_literals;

TEST(LatencyCounts, HaveNothingToTellAtFirst) {
    const latency_counts none;
    EXPECT_EQ(none.count(), 0U);
    EXPECT_EQ(none.quantile(0.5), 0ns);
    EXPECT_EQ(none.smallest(), 0ns);
    EXPECT_EQ(none.mean(), 0ns);
    EXPECT_TRUE(none.bars().empty());
}

TEST(LatencyCounts, AreWithinAThirtySecondOfTheTruthAtEveryScale) {
    for (std::int64_t truth = 1; truth < 1'000'000'000'000'000; truth = truth * 3 + 1) {
        latency_counts counts;
        for (int i = 0; i < 99; ++i) counts.add(std::chrono::nanoseconds(truth));
        counts.add(std::chrono::nanoseconds(truth * 2));
        const auto told = counts.quantile(0.5).count();
        EXPECT_GE(told, truth);
        EXPECT_LE(static_cast<double>(told), static_cast<double>(truth) * (1 + 1.0 / 32));
    }
}

TEST(LatencyCounts, QuantilesAreOfTheRankAskedFor) {
    latency_counts counts;
    for (int i = 1; i <= 1000; ++i) counts.add(std::chrono::microseconds(i));
    const auto near = [](std::chrono::nanoseconds told, std::chrono::microseconds truth) {
        return told >= truth && told < truth + truth / 32 + 1ns;
    };
    EXPECT_TRUE(near(counts.quantile(0.5), 500us));
    EXPECT_TRUE(near(counts.quantile(0.9), 900us));
    EXPECT_EQ(counts.quantile(1.0), 1000us);
    EXPECT_EQ(counts.smallest(), 1us);
    EXPECT_EQ(counts.largest(), 1000us);
    EXPECT_EQ(counts.mean(), 500'500ns);
}

TEST(LatencyCounts, OfSeveralThreadsAddUp) {
    latency_counts one;
    latency_counts other;
    one.add(10us);
    other.add(30us);
    other.add(2us);
    one.add(other);
    EXPECT_EQ(one.count(), 3U);
    EXPECT_EQ(one.smallest(), 2us);
    EXPECT_EQ(one.largest(), 30us);
    EXPECT_EQ(one.mean(), 14us);
}

TEST(LatencyCounts, BarsHoldEverythingAndTouchEachOther) {
    latency_counts counts;
    for (const auto took : {100ns, 150ns, 5000ns, 6000ns}) counts.add(took);
    const auto bars = counts.bars();
    ASSERT_FALSE(bars.empty());
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        sum += bars[i].count;
        EXPECT_EQ(bars[i].from, i > 0 ? bars[i - 1].below : bars[i].from);
    }
    EXPECT_EQ(sum, 4U);
    EXPECT_GT(bars.front().count, 0U);
    EXPECT_GT(bars.back().count, 0U);
    EXPECT_LE(bars.front().from, 100ns);
    EXPECT_GT(bars.back().below, 6000ns);
}

TEST(BenchReport, TimesAreShort) {
    EXPECT_EQ(short_time(850ns), "850ns");
    EXPECT_EQ(short_time(123'456ns), "123µs");
    EXPECT_EQ(short_time(4'560us), "4.56ms");
    EXPECT_EQ(short_time(1'200ms), "1.20s");
}

TEST(BenchReport, ProgressIsAsLongAtTheEndAsAtTheBeginning) {
    EXPECT_EQ(progress_line(workload::contended, 0, 1'234'567),
              "contended    [................................]   0%  1,234,567 cycles");
    EXPECT_EQ(progress_line(workload::contended, 0.5, 0),
              "contended    [################................]  50%  0 cycles");
    EXPECT_EQ(progress_line(workload::contended, 7, 0),
              "contended    [################################] 100%  0 cycles");
}

}  // namespace
}  // namespace holdfast::cli::latency_counts_test
